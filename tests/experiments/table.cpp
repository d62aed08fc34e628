#include "experiments/config/table.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "experiments/commands/list.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/report/evaluation.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/report/html.hpp"
#include "nn/files/number.hpp"
#include "nn/files/utf8.hpp"
#include "tests/environment.hpp"

using namespace heed;

TEST_SUITE("table") {
  TEST_CASE("an evaluation says what ± is in its first line, not over the column of units") {
    Evaluation found;
    found.run = "r", found.split = "test", found.weights = "last";
    found.whole.values.set("loss", 1.5);
    CHECK(table_of(found).starts_with("r: step 0, last weights, test; ± is a standard error\n"));
  }

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

  TEST_CASE("columns that are empty below their heads are left out") {
    CHECK(without_empty_columns({{"a", "b", "c"}, {"1", "", "2"}, {"", "", "3"}}) == TableRows{{"a", "c"}, {"1", "2"}, {"", "3"}});
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
    std::vector<std::pair<double, std::string>> const numbers{{1.5, "1.5000"},          {1e163, "1.00e163"},    {-1.234e238, "-1.2e238"},
                                                              {123456.78, "123456.8"},  {12345678, "12345678"}, {123456789, "1.23e8"},
                                                              {-99999999.4, "-1.00e8"}, {infinity, "∞"},        {-infinity, "-∞"},
                                                              {std::nan(""), "NaN"},    {0.00001, "0.0000"}};
    for (auto const& [x, shown] : numbers) CHECK(short_number(x, 4) == shown);
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

  namespace {

  /// Tables of this width while it lives.
  struct TablesOf {
    explicit TablesOf(std::size_t width) { set_table_width(width); }
    ~TablesOf() { set_table_width(whole_lines); }
  };

  std::string letters_of(std::string page) {
    std::erase_if(page, [](char c) { return c == ' ' || c == '\n'; });
    std::ranges::sort(page);
    return page;
  }

  }  // namespace

  TEST_CASE("columns that do not fit go below their row; help is wrapped beside its key, or below it") {
    std::vector<std::vector<std::string>> const help{{"key", "meaning"},
                                                     {"train.clip", "largest gradient norm; gradients are scaled down to it"}},
        numbers{{"metric", "all", "short", "long"}, {"loss", "1.9920 ± 0.0031", "1.9 ± 0.1", "2.1 ± 0.1"}};
    {
      TablesOf const width(40);
      CHECK(table(help) == "  key\n      meaning\n  train.clip\n      largest gradient norm; gradients\n      are scaled down to it\n");
      CHECK(table(numbers) == "  metric  all              short\n      long\n  loss    1.9920 ± 0.0031  1.9 ± 0.1\n      2.1 ± 0.1\n");
      CHECK(table({{std::string(50, 'x'), "y"}}) == "  " + std::string(38, 'x') + "\n  " + std::string(12, 'x') + "\n      y\n");
    }
    {
      TablesOf const width(48);
      CHECK(table(help) == "  key         meaning\n  train.clip  largest gradient norm; gradients\n              are scaled down to it\n");
    }
    CHECK(table(help) == "  key         meaning\n  train.clip  largest gradient norm; gradients are scaled down to it\n");
    CHECK(table({{"a long one", "b", "c"}, {"a", "bb", "c"}}, 0, {4}) == "a long one  b   c\na     bb  c\n");
  }

  TEST_CASE("lists fit into 40, 80, 125 and 200 columns, and lack nothing") {
    for (char const* const topic : {"", "keys", "metrics", "operations"}) {
      auto const whole = letters_of(list(topic));
      for (std::size_t const width : {40, 80, 125, 200}) {
        CAPTURE(topic);
        CAPTURE(width);
        TablesOf const tables(width);
        std::istringstream lines(list(topic));
        std::string all;
        for (std::string line; std::getline(lines, line); all += line) CHECK_MESSAGE(columns(line) <= width, line);
        CHECK(letters_of(all) == whole);
      }
    }
  }

  TEST_CASE("the width is the terminal's, or $COLUMNS, within 40 and 200; a file has none") {
    int const terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(terminal >= 0);
    test::Environment const without("COLUMNS", std::nullopt);
    for (auto const& [given, width] : {std::pair<unsigned short, std::size_t>{20, 40}, {0, 80}, {125, 125}, {300, 200}}) {
      winsize const size{.ws_row = 25, .ws_col = given, .ws_xpixel = 0, .ws_ypixel = 0};
      REQUIRE(::ioctl(terminal, TIOCSWINSZ, &size) == 0);
      CHECK(columns_of(terminal) == width);
      test::Environment const none("COLUMNS", "wide");
      CHECK(columns_of(terminal) == width);
      test::Environment const asked("COLUMNS", "100");
      CHECK(columns_of(terminal) == 100);
    }
    ::close(terminal);
    int const file = ::open("/dev/null", O_RDWR);
    CHECK(columns_of(file) == whole_lines);
    ::close(file);
  }
}
