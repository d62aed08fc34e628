#include "experiments/text/table.hpp"

#include <limits>

#include <doctest/doctest.h>

using namespace heed;

TEST_SUITE("table") {
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

  TEST_CASE("a cell's bar is no border of a Markdown table") { CHECK(markdown_row({"|j − i|", "2"}) == "| \\|j − i\\| | 2 |\n"); }

  TEST_CASE("a column that is empty everywhere is left out") {
    CHECK(table({{"arm", "", "loss"}, {"dot", "", "2.0"}}) == "  arm  loss\n  dot  2.0\n");
  }
}
