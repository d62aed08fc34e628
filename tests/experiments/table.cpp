#include "experiments/config/table.hpp"

#include "experiments/metric/statistics.hpp"
#include "experiments/report/html.hpp"
#include "experiments/report/plot.hpp"
#include "nn/files/number.hpp"
#include "nn/files/utf8.hpp"
#include "tests/test.hpp"

using namespace heed;

TEST_SUITE("table") {
  TEST_CASE("a text of the data does not turn the words beside it round: on pages, in figures, in tables of Markdown") {
    struct Case {
      std::string text, shown;
    };
    for (auto const& [text, shown] :
         {Case{"plain, größer", "plain, größer"}, Case{"a\u202Eb", "aU+202Eb"}, Case{"\u2066x\u2069", "U+2066xU+2069"},
          Case{"שלום עולם, אב 3", "\u2068שלום עולם\u2069, \u2068אב\u2069 3"}, Case{"\u061Cسلام ", "U+061C\u2068سلام\u2069 "}}) {
      CHECK(isolated(text) == shown);
      CHECK(escape(text) == shown);
      CHECK(gnuplot_text(text) == '"' + shown + '"');
      CHECK(markdown_row({text}) == "| " + shown + " |\n");
    }
  }

  TEST_CASE("numbers that differ are told in figures that do; what is shown as zero has no sign") {
    CHECK(told_apart(0.002, 0.00200001) == std::pair<std::string, std::string>("0.002", "0.00200001"));
    CHECK(told_apart(0.5, 0.25) == std::pair<std::string, std::string>("0.5", "0.25"));
    CHECK(told_apart(2, 2).first == "2");
    CHECK(short_number(-0.00001, 4) == "0.0000");
    CHECK(short_number(-0.00006, 4) == "-0.0001");
    CHECK(measured(4366.0, Interval{4366.0 - 520, 4366.0 + 520}, "") == "4366 ± 520");
  }

  TEST_CASE("numbers of one quantity have as many decimals as show the largest to five figures") {
    NumberFormat const loss(2.0361), sharpness(390.2526), tokens(81234.5), small(0.000451);
    CHECK(loss(1.99199) == "1.9920");
    CHECK(loss.interval(1.9646, 2.01833) == "[1.9646, 2.0183]");
    CHECK(loss.difference(0.0445, 0.0271) == "+0.0445 ± 0.0271");
    CHECK(loss.difference(-0.0445, {}) == "-0.0445");
    CHECK(sharpness(16.2070) == "16.21");
    CHECK(sharpness.interval(-2207.7354, 2670.0311) == "[-2207.74, 2670.03]");
    CHECK(tokens(81234.5) == "81234");
    CHECK(small(0.000451) == "0.000451");
    CHECK(NumberFormat(0.05)(0.0312) == "0.0312");
    CHECK(NumberFormat(0)(0.0) == "0.0000");
    CHECK(NumberFormat(std::numeric_limits<double>::infinity())(1.5) == "1.5000");
  }

  TEST_CASE("numbers have at most eight characters, however large or small they are") {
    double const infinity = std::numeric_limits<double>::infinity();
    for (auto const& [x, shown] : std::vector<std::pair<double, std::string>>{{1.5, "1.5000"},
                                                                              {1e163, "1.00e163"},
                                                                              {-1.234e238, "-1.2e238"},
                                                                              {123456.78, "123456.8"},
                                                                              {12345678, "12345678"},
                                                                              {123456789, "1.23e8"},
                                                                              {-99999999.4, "-1.00e8"},
                                                                              {infinity, "∞"},
                                                                              {-infinity, "-∞"},
                                                                              {std::nan(""), "NaN"},
                                                                              {0.00001, "0.0000"}})
      CHECK(short_number(x, 4) == shown);
    CHECK(short_number(1e-9, 12) == "1.00e-9");
    CHECK(short_number(-1e-300, 12) == "-1e-300");
    CHECK(short_number(2, 1, true) == "+2.0");
    CHECK(short_number(infinity, 1, true) == "+∞");
    auto const loss = NumberFormat::of({2.03, 1e238, 2.1, infinity});
    CHECK(loss(2.03) == "2.0300");
    CHECK(loss.interval(-1e238, 2e238) == "[-1.0e238, 2.00e238]");
    CHECK(NumberFormat::of({390.2526, 16.2})(16.207) == "16.21");
    CHECK(NumberFormat::of({})(0.5) == "0.5000");
    for (double size = 1e-12; size < 1e300; size *= 7.3)
      for (double const x : {size, -size})
        for (auto const& text : {NumberFormat(size)(x), NumberFormat(2)(x), NumberFormat(size).difference(x, {})})
          CHECK_MESSAGE(columns(text) <= 8, text);
  }

  TEST_CASE("a cell's bar is no border of a Markdown table") { CHECK(markdown_row({"|j − i|", "2"}) == "| \\|j − i\\| | 2 |\n"); }

  TEST_CASE("a column that is empty everywhere is left out") {
    CHECK(table({{"arm", "", "loss"}, {"dot", "", "2.0"}}) == "  arm  loss\n  dot  2.0\n");
  }
}
