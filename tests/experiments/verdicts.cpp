#include "tests/experiments/comparison.hpp"

// Verdicts as experiments/ablation.md has them, where the differences have no spread.

TEST_SUITE("verdicts") {
  using namespace heed;
  using test::compare_one, test::of;

  namespace {

  std::vector<double> equal(std::size_t seeds, double difference) { return std::vector(seeds, difference); }

  }  // namespace

  TEST_CASE("differences that are all equal: equivalent below the margin, and as the sign flips say at it and beyond it") {
    double const margin = 0.015625;
    Question const lower{.margin = margin}, higher{.better = Better::higher, .margin = margin};
    for (double const sign : {1.0, -1.0}) {
      CAPTURE(sign);
      Verdict const when_lower = sign > 0 ? Verdict::worse : Verdict::better, when_higher = sign > 0 ? Verdict::better : Verdict::worse;
      auto const below = of(equal(6, sign * margin / 2), lower);
      CHECK(below.verdict == Verdict::equivalent);
      CHECK((below.equal() && below.p == 0.03125 && below.p_equivalence == 0.0));
      CHECK((!below.interval && !below.p_t && !below.effect));
      CHECK(of(equal(6, sign * margin / 2), higher).verdict == Verdict::equivalent);
      for (double const size : {margin, 2 * margin, 1e300}) {
        CAPTURE(size);
        auto const there = of(equal(6, sign * size), lower);
        CHECK((there.verdict == when_lower && there.p_equivalence == 1.0));
        CHECK(of(equal(6, sign * size), higher).verdict == when_higher);
      }
      // Without a margin nothing is equivalent.
      CHECK(of(equal(6, sign * margin / 2)).verdict == when_lower);
      CHECK_FALSE(of(equal(6, sign * margin / 2)).p_equivalence);
      // Five seeds reach no p of 0.05, which an equivalence does not need.
      CHECK(of(equal(5, sign * margin / 2), lower).verdict == Verdict::equivalent);
      CHECK(of(equal(5, sign * margin), lower).verdict == Verdict::unclear);
      CHECK(of(equal(3, sign * margin / 2), lower).verdict == Verdict::equivalent);
    }
    CHECK(of(equal(30, margin / 2), lower).verdict == Verdict::equivalent);
    CHECK(of(equal(30, margin), lower).verdict == Verdict::worse);
  }

  TEST_CASE("differences that are equal but for rounding are equal, and at the margin where they are the margin but for rounding") {
    std::vector<double> const arm{0.3, 0.4, 1.1, 0.2, 0.7, 0.9}, baseline{0.2, 0.3, 1.0, 0.1, 0.6, 0.8};
    CHECK(*std::ranges::min_element(arm) - 0.1 == 0.1);
    CHECK(1.1 - 1.0 > 0.1);
    CHECK(0.9 - 0.8 < 0.1);
    CHECK(compare_one(arm, baseline, {.margin = 0.1}).verdict == Verdict::worse);
    CHECK(compare_one(baseline, arm, {.margin = 0.1}).verdict == Verdict::better);
    CHECK(compare_one(arm, baseline, {.margin = 0.11}).verdict == Verdict::equivalent);
  }

  TEST_CASE(
      "the baseline's values on two seeds or more are identical, with a margin and without; of one or two seeds nothing else is said") {
    for (Question const& question : {Question{}, Question{.margin = 0.1}, Question{.better = Better::higher, .margin = 0.1}}) {
      CAPTURE(question.margin);
      for (auto const seeds : std::initializer_list<std::size_t>{2, 3, 6, 30})
        CHECK(of(equal(seeds, 0), question).verdict == Verdict::identical);
      CHECK(of(equal(1, 0), question).verdict == Verdict::unclear);
      for (double const difference : {0.05, 0.1, 5.0})
        for (auto const seeds : std::initializer_list<std::size_t>{1, 2}) {
          CHECK(of(equal(seeds, difference), question).verdict == Verdict::unclear);
          CHECK_FALSE(of(equal(seeds, difference), question).p_equivalence);
        }
    }
  }

  TEST_CASE("a spread as small as one likes comes to the verdict of none") {
    for (double const size : {0.5, 1.5}) {
      std::vector<double> nearly = equal(6, size);
      nearly[0] += 1e-9, nearly[1] -= 1e-9;
      auto const c = of(nearly, {.margin = 1});
      CHECK_FALSE(c.equal());
      CHECK(c.verdict == of(equal(6, size), {.margin = 1}).verdict);
    }
  }

  TEST_CASE("sentences of equal differences say that they are equal") {
    auto const say = [](Comparison const& c, Question const& question) { return sentence("additive", "scaled", "nat", c, question); };
    Question const question{.margin = 0.015625};
    CHECK(say(of(equal(6, 0.0078125), question), question) ==
          "additive is 0.00781 nat worse than scaled (p = 0.031, 6 seeds), by less than 0.0156 nat (all differences are equal)");
    CHECK(say(of(equal(4, 0.0078125), question), question) ==
          "no difference between additive and scaled larger than 0.0156 nat (all differences are equal, 4 seeds)");
    CHECK(say(of(equal(6, 0.015625), question), question) == "additive is 0.0156 nat worse than scaled (p = 0.031, 6 seeds)");
  }
}
