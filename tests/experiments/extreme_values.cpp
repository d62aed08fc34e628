#include "autograd/error.hpp"
#include "autograd/random.hpp"
#include "tests/experiments/comparison.hpp"

// Statistics of values that are huge, infinite or bounded, and the t test beside the sign flips.

TEST_SUITE("extreme_values") {
  using namespace heed;
  using doctest::Approx;

  using test::compare_one, test::infinity, test::of;

  TEST_CASE("values of any size: what is worse at all seeds is worse, alone and beside other arms") {
    std::vector<double> const huge{1e163, 3e180, 1e200, 2e210, 5e225, 1e238}, ordinary{12.1, 12.4, 11.9, 12.2, 12.0, 12.3};
    std::vector<double> mixed = ordinary;  // worse at each seed, by orders of magnitude at three
    for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = i % 2 == 0 ? 1e200 : mixed[i] + 0.1;
    for (auto const& values : {huge, mixed, std::vector(6, infinity), std::vector{13.0, 13.0, 13.0, infinity, infinity, infinity},
                               std::vector{1e300, 1e308, 1.7e308, 1e305, 1e301, 1e302}}) {
      auto const worse = compare_one(values, ordinary);
      CHECK(worse.p == 0.03125);
      CHECK(worse.verdict == Verdict::worse);
      CHECK(compare_one(ordinary, values).verdict == Verdict::better);
      CHECK(compare_one(values, ordinary, {.better = Better::higher}).verdict == Verdict::better);
      auto const lower = compare_one(std::vector(6, -infinity), ordinary, {.better = Better::higher});
      CHECK((lower.verdict == Verdict::worse && lower.mean == -infinity));
      if (worse.ranked) continue;  // huge at some seeds only
      // Huge at each seed beside arms that do not differ: no flip of theirs comes to as much.
      Stream const stream(5, "beside");
      std::vector<BySeed> arms{test::by_seed(values)};
      for (std::size_t arm = 0; arm < 5; ++arm) {
        auto& other = arms.emplace_back(test::by_seed(ordinary));
        for (auto& [seed, value] : other) value += stream.normal(arm * 6 + static_cast<std::size_t>(seed)) * 0.1;
      }
      CHECK(compare(arms, test::by_seed(ordinary), {}).front().p == 0.03125);
    }
    auto const wide = compare_one(huge, ordinary);
    CHECK_FALSE(wide.ranked);
    CHECK(wide.mean == Approx(1e238 / 6));
    CHECK(*wide.effect == Approx(0.408 * 0.8408).epsilon(0.01));
    CHECK(wide.interval.has_value());
    CHECK(estimate(huge).deviation == Approx(1e238 / std::sqrt(6.0)));
    std::vector<double> many(25, 2e200);
    many[3] = 1e238;
    CHECK(estimate(many).method == "BCa");
    CHECK(estimate(many).interval->high < 1e238);
    CHECK(sentence("wild", "scaled", "", wide, {}) == "wild is 1.67e237 ± 4.28e237 worse than scaled (p = 0.031, 6 seeds)");
  }

  TEST_CASE("infinite values: no interval, no effect, and that is said; neither side is better where both are infinite") {
    std::vector<double> const some{13, infinity, 13.2, infinity, 12.9, infinity}, ordinary{12.1, 12.4, 11.9, 12.2, 12.0, 12.3};
    auto const e = estimate(some);
    CHECK((e.mean == infinity && e.deviation == infinity && !e.interval && e.method == "none"));
    auto const c = compare_one(some, ordinary);
    CHECK((c.mean == infinity && !c.interval && !c.effect && !c.p_t && !c.p_equivalence && c.ranked));
    CHECK(sentence("wild", "scaled", "nat", c, {}) ==
          "wild is infinitely worse than scaled (p = 0.031 by signed ranks, 6 seeds); no interval, for values are infinite");
    CHECK((compare_one(some, some).verdict == Verdict::identical && compare_one(some, some).seeds == 3));
    CHECK(compare_one(std::vector(6, infinity), std::vector(6, infinity)).seeds == 0);

    std::vector<double> const others{infinity, 12, infinity, 12, infinity, 12};
    auto const both = compare_one(some, others);
    CHECK((std::isnan(both.mean) && both.p == 1 && both.verdict == Verdict::unclear));
    CHECK(sentence("wild", "scaled", "", both, {}) ==
          "wild and scaled: no conclusion: each is infinite on seeds where the other is not (p = 1, 6 seeds)");

    // Better on nineteen seeds of twenty, and infinite on one: neither is better.
    std::vector<double> once(20, 0.9), always(20, 1.0);
    once[7] = infinity;
    auto const mostly = compare_one(once, always);
    CHECK((mostly.p < 0.05 && mostly.mean == infinity && mostly.verdict == Verdict::unclear));
    CHECK(sentence("wild", "scaled", "", mostly, {})
              .ends_with("most seeds have the opposite sign of the mean, which a few large differences dominate"));
  }

  TEST_CASE("signed ranks: Wilcoxon's, where one difference outweighs all others") {
    // Ranks 1 … 5, the 2 negative: the sum is 11. As much have the signs that turn nothing, 1 or 2, and their mirror images (wilcox.test).
    auto const p = sign_flip_test({{1, -2, 3, 4, 1e9}});
    CHECK(p.ranked == std::vector{true});
    CHECK(p.alone[0] == 6.0 / 32);
    CHECK(sign_flip_test({{1, -2, 3, 4, infinity}}).alone == p.alone);
    CHECK(sign_flip_test({{10, -20, 30, 40, 5e4}}).ranked == std::vector{true});
    CHECK(sign_flip_test({{10, -20, 30, 40, 2e4}}).ranked == std::vector{false});
    CHECK(sign_flip_test({{0, 0, 0, 0.5, 0.6}}).ranked == std::vector{false});  // zeros are no measure
    CHECK(sign_flip_test({{0, 0, 0, 1e200, 2e200}}).alone == sign_flip_test({{0, 0, 0, 1, 2}}).alone);
    CHECK_THROWS_AS(sign_flip_test({{1, NAN}}), Error);
  }

  TEST_CASE("intervals of bounded values stay within their bounds, and of their differences within what those allow") {
    Bounds const share{.min = 0, .max = 1};
    std::vector<double> const accuracy{0.99, 0.7, 1.0, 1.0};
    auto const e = estimate(accuracy, 0.95, share);
    CHECK(estimate(accuracy).interval->high > 1);
    CHECK((e.interval->high == 1 && e.interval->low == estimate(accuracy).interval->low));
    auto const c = compare_one({1, 0.9, 1}, {0, 0, 0.4}, {.better = Better::higher, .bounds = share});
    CHECK(c.interval->high == 1);
    CHECK(c.mean == Approx(2.5 / 3));
    CHECK(shown_difference(NumberFormat(1), c.mean, c.interval).ends_with(", 1.0000]"));
    CHECK(shown_difference(NumberFormat(1), 0.5, Interval{0.3, 0.7}) == "+0.5000 ± 0.2000");
    CHECK(sentence("a", "b", "", c, {.better = Better::higher, .bounds = share}).find("difference 0.8 [0.") != std::string::npos);
    CHECK(bounds_of("validation.accuracy").max == 1);
    CHECK(bounds_of("validation.ema.bleu").max == 100);
    CHECK(bounds_of("validation.perplexity").min == 1);
    CHECK(bounds_of("nothing").min == -infinity);
  }

  TEST_CASE("a paired t test beside the sign flips: of three seeds it says what would have been reported, and decides nothing") {
    auto const c = of({0.1, 0.11, 0.12});
    CHECK(*c.p_t == Approx(0.002743).epsilon(1e-3));  // t = 0.11/(0.01/√3) = 19.05, two degrees of freedom
    CHECK((c.p == 0.25 && c.verdict == Verdict::unclear));
    CHECK(*of({1, 3}).p_t == Approx(0.2951672).epsilon(1e-6));  // t = 2, one degree: 1 − 2 atan(2)/π
    CHECK_FALSE(of({0.1}).p_t);
    CHECK_FALSE(of({0.1, 0.1, 0.1}).p_t);
  }
}
