#include "autograd/random.hpp"
#include "tests/experiments/comparison.hpp"

TEST_SUITE("statistics") {
  using namespace heed;
  using doctest::Approx, test::by_seed, test::compare_one, test::infinity, test::of;

  namespace {

  double mean(std::span<double const> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }

  double variance(std::span<double const> values) {
    double const centre = mean(values);
    double squares = 0;
    for (double const value : values) squares += (value - centre) * (value - centre);
    return squares / static_cast<double>(values.size());
  }

  // Student 1908, extra hours of sleep of ten patients under two drugs (R's data set `sleep`).
  std::vector<double> const drug1{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
  std::vector<double> const drug2{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

  // Darwin 1876, heights of crossed less self-fertilised maize in eighths of an inch, 15 pairs (Fisher 1935, The Design of Experiments).
  std::vector<double> const maize{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};

  // Efron and Tibshirani 1993: table 2.1, survival of the treated mice; table 14.1, the spatial test, A.
  std::vector<double> const mice{94, 197, 16, 38, 99, 141, 23};
  std::vector<double> const spatial{48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41};

  /// How often the comparison of arms with true differences `shifts` calls one of the arms from `first` on better or worse; the arms share
  /// half the variance of their differences, as arms with one baseline do.
  double alarms(std::size_t seeds, std::vector<double> const& shifts, std::size_t first, std::uint64_t repetitions, double missing = 0) {
    Stream const stream(1, "alarms");
    std::uint64_t draw = 0, found = 0;
    for (std::uint64_t i = 0; i < repetitions; ++i) {
      BySeed baseline;
      std::vector<BySeed> arms(shifts.size());
      for (Index seed = 0; seed < static_cast<Index>(seeds); ++seed) {
        baseline[seed] = stream.normal(draw++) * std::sqrt(0.5);
        for (std::size_t arm = 0; arm < arms.size(); ++arm) {
          bool const there = stream.uniform(draw++) >= missing;
          double const value = shifts[arm] + stream.normal(draw++) * std::sqrt(0.5);
          if (there) arms[arm][seed] = value;
        }
      }
      auto const results = compare(arms, baseline, {});
      auto const alarming = [](Comparison const& c) { return c.verdict != Verdict::unclear; };
      found += std::ranges::any_of(std::span(results).subspan(first), alarming) ? 1 : 0;
    }
    return static_cast<double>(found) / static_cast<double>(repetitions);
  }

  }  // namespace

  TEST_CASE("Student's t: sleep, R's t.test(extra ~ group, paired = TRUE)") {
    auto const c = compare_one(drug1, drug2, {.better = Better::higher});
    CHECK(c.seeds == 10);
    CHECK(c.mean == Approx(-1.58).epsilon(1e-12));
    CHECK(c.mean / (c.deviation / std::sqrt(10)) == Approx(-4.062127683).epsilon(1e-9));
    REQUIRE(c.interval);
    CHECK(c.interval->low == Approx(-2.4598858).epsilon(1e-7));
    CHECK(c.interval->high == Approx(-0.7001142).epsilon(1e-7));
    // d_z = −1.2845576; Hedges' correction Γ(4.5) / (√4.5 Γ(4)) = 0.9138743
    CHECK(*c.effect == Approx(-1.2845576 * 0.9138743).epsilon(1e-6));
    // nine differences below 0, one of 0: 4 of the 1024 flips reach the sum
    CHECK(c.p == 4.0 / 1024);
    CHECK(*c.p_t == Approx(0.002833).epsilon(2e-4));
    CHECK_FALSE(c.ranked);
    CHECK(c.verdict == Verdict::worse);
    CHECK(compare_one(drug1, drug2, {.better = Better::lower}).verdict == Verdict::better);
  }

  TEST_CASE("equivalence: sleep, SciPy's t.sf and t.cdf of both one-sided tests") {
    CHECK(*compare_one(drug1, drug2, {.margin = 2.5}).p_equivalence == Approx(0.021116860246500724).epsilon(1e-9));
    auto const inside = compare_one(drug2, drug1, {.margin = 3});
    CHECK(*inside.p_equivalence == Approx(0.0026555702926586685).epsilon(1e-9));
    CHECK(inside.verdict == Verdict::equivalent);
    auto const on_edge = compare_one(drug1, drug2, {.margin = 1.58});
    CHECK(*on_edge.p_equivalence == Approx(0.5).epsilon(1e-9));
    CHECK(on_edge.verdict == Verdict::better);
    CHECK_FALSE(compare_one(drug1, drug2).p_equivalence);
  }

  TEST_CASE("sign flips: Darwin's maize, 1726 of 32768 (Fisher 1935)") {
    CHECK(of(maize).p_alone == 1726.0 / 32768);
    CHECK(of(maize).verdict == Verdict::unclear);
    CHECK(of(maize).interval->low == Approx(8 * 0.003899165).epsilon(1e-6));  // R's t.test, in inches
    CHECK(of(maize).interval->high == Approx(8 * 5.229434).epsilon(1e-6));

    // Zeros change no flip's sum but make the test draw its flips.
    auto padded = maize;
    padded.resize(70, 0.0);
    double const p = of(padded).p_alone, expected = 1726.0 / 32768;
    CHECK(std::abs(p - expected) < 4 * std::sqrt(expected / 100'000));
    CHECK(of(padded).p_alone == p);
  }

  TEST_CASE("sign flips by hand") {
    // Sums of (1, 2, 3): 6 0 2 −4; of (3, −1, 2): 4 2 6 0, seeds 3 and 2 flipped in the same order.
    auto const p = sign_flip_test({{1, 2, 3}, {3, -1, 2}});
    CHECK(p.alone == std::vector{1.0 / 4, 2.0 / 4});
    CHECK(p.joint == std::vector{2.0 / 4, 2.0 / 4});  // the first against max: 6 2 6 4; the second by itself
    CHECK(sign_flip_test({{10, 20, 30}, {-0.3, 0.1, -0.2}}).joint == p.joint);
    CHECK(sign_flip_test({{0, 0, 0}, {1, 1, 1}}).joint == std::vector{1.0, 0.25});
    CHECK(sign_flip_test({}).joint.empty());
    CHECK(sign_flip_test({{}}).joint == std::vector{1.0});
    CHECK_THROWS_AS(sign_flip_test({{1, 2}, {1}}), Error);
  }

  TEST_CASE("six seeds reach 2^-5 with any number of arms") {
    Stream const stream(2, "arms");
    std::vector<BySeed> arms(40);
    for (std::size_t arm = 0; arm < arms.size(); ++arm)
      for (Index seed = 0; seed < 6; ++seed)
        arms[arm][seed] = static_cast<double>(arm + 1) * (1 + 0.05 * stream.normal(arm * 6 + static_cast<std::size_t>(seed)));
    for (auto const& c : compare(arms, by_seed({}), {})) CHECK(c.seeds == 0);
    BySeed const baseline{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}};
    for (auto const& c : compare(arms, baseline, {})) CHECK(c.p == smallest_p(6));
    CHECK(smallest_p(6) == 0.03125);
    CHECK(smallest_p(1) == 1);
    CHECK(smallest_p(0) == 1);
  }

  TEST_CASE("t quantiles: printed tables") {
    auto const half = [](std::vector<double> const& values, double confidence) {
      auto const e = estimate(values, confidence);
      CHECK(e.method == "t");
      return e.interval->half_width() / (e.deviation / std::sqrt(static_cast<double>(e.count)));
    };
    CHECK(half({1, 2}, 0.95) == Approx(12.706).epsilon(1e-4));
    CHECK(half({1, 2, 3, 4, 5, 7}, 0.95) == Approx(2.571).epsilon(1e-3));
    CHECK(half({1, 2, 3, 4, 5, 7}, 0.99) == Approx(4.032).epsilon(1e-3));
    auto const e = estimate(mice);
    CHECK(e.mean == Approx(86.857).epsilon(1e-5));
    CHECK(e.deviation / std::sqrt(7) == Approx(25.24).epsilon(1e-3));  // table 2.1
  }

  TEST_CASE("BCa: Efron and Tibshirani's data") {
    // Section 14.3: variance 171.5, 90 % interval 115.8 … 259.6 from 2000 resamples; SciPy's of 100,000 is 115.7 … 260.9.
    CHECK(variance(spatial) == Approx(171.534).epsilon(1e-5));
    auto const published = bca_interval(spatial, variance, 0.9);
    CHECK(std::abs(published.low - 115.7) < 4);  // three standard errors of 10,000 resamples
    CHECK(std::abs(published.high - 260.9) < 6);

    // The ideal bootstrap of a mean, all 7^7 resamples counted in Python: 46.286 … 138.286.
    auto const ideal = bca_interval(mice, mean);
    CHECK(std::abs(ideal.low - 46.286) < 1.5);
    CHECK(std::abs(ideal.high - 138.286) < 2.5);

    // SciPy's stats.bootstrap of 400,000 resamples: 24.12 … 34.25.
    auto const e = estimate(spatial);
    CHECK(e.method == "BCa");
    CHECK(std::abs(e.interval->low - 24.13) < 0.2);
    CHECK(std::abs(e.interval->high - 34.25) < 0.2);
    CHECK(estimate(spatial).interval->low == e.interval->low);
    CHECK(estimate(std::span(spatial).first(19)).method == "t");
    CHECK_THROWS_AS(bca_interval(std::vector{1.0}, mean), Error);
  }

  TEST_CASE("the jackknife's standard error of a mean is s/√n, and that of a ratio as close as the delta method") {
    std::vector<double> const x{4.1, 5.5, 3.9, 6.2, 5.0, 4.4, 5.8, 4.9}, y{2.0, 2.9, 1.8, 3.3, 2.4, 2.3, 2.8, 2.5};
    double const sx = std::accumulate(x.begin(), x.end(), 0.0), sy = std::accumulate(y.begin(), y.end(), 0.0), n = 8;
    std::vector<double> means, ratios;
    double squares = 0, residuals = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      means.push_back((sx - x[i]) / (n - 1));
      ratios.push_back((sy - y[i]) / (sx - x[i]));
      squares += std::pow(x[i] - sx / n, 2);
      residuals += std::pow(y[i] - sy / sx * x[i], 2);
    }
    CHECK(*jackknife_error(means) == doctest::Approx(std::sqrt(squares / (n - 1) / n)));
    CHECK(*jackknife_error(ratios) == doctest::Approx(std::sqrt(residuals / (n - 1) / n) / (sx / n)).epsilon(0.05));
    CHECK_FALSE(jackknife_error(std::vector{1.0}).has_value());
    CHECK_FALSE(jackknife_error(std::vector{1.0, std::nan("")}).has_value());
  }

  TEST_CASE("few, constant and missing values") {
    auto const one = estimate(std::vector{3.0});
    CHECK((one.count == 1 && one.mean == 3 && one.deviation == 0 && !one.interval && one.method == "none"));
    CHECK_FALSE(estimate(std::vector(30, 0.1)).interval);
    CHECK_THROWS_AS(estimate({}), Error);
    CHECK_THROWS_AS(estimate(std::vector{1.0, std::nan("")}), Error);
    CHECK_THROWS_AS(bca_interval(std::vector{1.0, infinity}, mean), Error);
    CHECK_THROWS_AS(of({1, NAN, 2}), Error);

    auto const single = of({0.5}, {.margin = 1});
    CHECK((single.p == 1 && !single.interval && !single.effect && !single.p_equivalence && single.verdict == Verdict::unclear));
    auto const none = of({});
    CHECK((none.p == 1 && none.seeds == 0 && none.mean == 0 && none.verdict == Verdict::unclear));
    auto const two = of({1, 2});
    CHECK((two.p == 0.5 && two.interval && !two.effect));
    auto const equal = of({0, 0, 0});
    CHECK((equal.p == 1 && !equal.interval && equal.verdict == Verdict::identical));

    // 0.3 − 0.2 and 0.4 − 0.3 differ in the last digit: that is no spread.
    auto const constant = compare_one({0.3, 0.4, 1.1, 0.2, 0.7, 0.9}, {0.2, 0.3, 1.0, 0.1, 0.6, 0.8});
    CHECK((constant.deviation == 0 && !constant.interval && !constant.effect));
    CHECK((constant.p == 0.03125 && constant.verdict == Verdict::worse));

    // An arm without seed 3 is compared on the others, and the arm beside it on all.
    BySeed const baseline{{1, 1.0}, {2, 1.1}, {3, 1.2}, {4, 1.3}};
    BySeed const whole{{1, 1.5}, {2, 1.5}, {3, 1.5}, {4, 1.5}}, part{{1, 1.5}, {2, 1.5}, {4, 1.5}, {9, 7.0}};
    auto const both = compare(std::vector{whole, part}, baseline, {});
    CHECK((both[0].seeds == 4 && both[0].p_alone == 0.125));
    CHECK((both[1].seeds == 3 && both[1].p_alone == 0.25));
    CHECK(both[1].mean == Approx((0.5 + 0.4 + 0.2) / 3));
  }

  TEST_CASE("coverage of the t interval is 95 %") {
    Stream const stream(3, "coverage");
    std::size_t const repetitions = 20'000;
    std::size_t covered = 0;
    std::vector<double> values(6);
    for (std::size_t i = 0; i < repetitions; ++i) {
      for (std::size_t j = 0; j < values.size(); ++j) values[j] = 2 + 3 * stream.normal(i * values.size() + j);
      auto const e = estimate(values);
      covered += e.interval->low <= 2 && 2 <= e.interval->high ? 1 : 0;
    }
    CHECK(std::abs(static_cast<double>(covered) / static_cast<double>(repetitions) - 0.95) < 0.01);
  }

  TEST_CASE("level of the sign-flip test over arms with one baseline") {
    // Without ties a false alarm is exactly as likely as the largest step of 2^(1−k) that is ≤ 0.05.
    std::uint64_t const repetitions = 4000;
    auto const error = [&](double level) { return 4 * std::sqrt(level / static_cast<double>(repetitions)); };
    CHECK(std::abs(alarms(6, {0, 0, 0, 0}, 0, repetitions) - 1.0 / 32) < error(1.0 / 32));
    CHECK(std::abs(alarms(7, {0, 0, 0, 0}, 0, repetitions) - 3.0 / 64) < error(3.0 / 64));
    CHECK(std::abs(alarms(8, {0}, 0, repetitions) - 6.0 / 128) < error(6.0 / 128));
    CHECK(alarms(8, {3, 0, 0, 0}, 1, repetitions) < 0.05 + error(0.05));  // beside an arm that does differ
    CHECK(alarms(8, {0, 0, 0, 0}, 0, repetitions, 0.2) < 0.05 + error(0.05));
  }

  TEST_CASE("power") {
    CHECK_FALSE(detectable_effect(5, 1));
    CHECK_FALSE(detectable_effect(8, 0));
    CHECK(*detectable_effect(5, 1, 0.1) > *detectable_effect(6, 1, 0.1));
    CHECK(*detectable_effect(1000, 1) == Approx(2.8016 / std::sqrt(1000)).epsilon(0.03));  // z_0.975 + z_0.8
    CHECK(seeds_that_detect(*detectable_effect(8, 3), 3) == 8);
    CHECK(seeds_that_detect(*detectable_effect(40, 3) * 1.0001, 3) == 40);

    double before = 0;
    for (double const effect : {0.0, 0.5, 1.0, 2.0}) {
      double const now = alarms(8, {effect}, 0, 1000);
      CHECK(now > before);
      before = now;
    }
  }

  TEST_CASE("the power that is promised is that of the test which gives the verdict, of any number of arms") {
    for (std::size_t const arms : {1, 2, 5, 12})
      for (std::size_t const seeds : {6, 8, 12}) {
        std::vector<double> effects(arms, 0);
        effects[0] = *detectable_effect(seeds, arms);
        INFO("arms ", arms, ", seeds ", seeds);
        CHECK(std::abs(alarms(seeds, effects, 0, 2000) - 0.8) < 0.03);
      }
  }

  TEST_CASE("seeds on which both diverged are no pair") {
    BySeed baseline{{1, INFINITY}, {2, INFINITY}, {3, INFINITY}}, arm = baseline;
    auto const verdict = [&] { return compare(std::vector{arm}, baseline, {.margin = 0.01}).front(); };
    CHECK(verdict().seeds == 0);
    CHECK(verdict().verdict == Verdict::unclear);
    for (int seed = 4; seed < 7; ++seed) baseline[seed] = 1, arm[seed] = 1 + 0.002 * seed;
    Comparison const mixed = verdict();
    CHECK(mixed.seeds == 3);
    baseline.erase(1), baseline.erase(2), baseline.erase(3);
    CHECK(*mixed.p_equivalence == *verdict().p_equivalence);
  }

  TEST_CASE("sentences") {
    Question const question{.margin = 0.01};
    auto const say = [&](Comparison const& c) { return sentence("additive", "scaled", "nat", c, question); };
    CHECK(say(of({-0.012, -0.016, -0.008, -0.014, -0.010, -0.012}, question)) ==
          "additive is 0.012 ± 0.003 nat better than scaled (p = 0.031, 6 seeds)");
    CHECK(say(of({0.112, 0.086, 0.118, 0.1, 0.11, 0.09}, question)) ==
          "additive is 0.103 ± 0.013 nat worse than scaled (p = 0.031, 6 seeds)");
    CHECK(say(of({0.002, -0.001, 0.003, -0.002, 0.001, 0.0}, question)) ==
          "no difference between additive and scaled larger than 0.01 nat (equivalence test, p < 0.001, 6 seeds)");
    CHECK(say(of({0.002, 0.001, 0.003, 0.002, 0.001, 0.003}, question)) ==
          "additive is 0.0020 ± 0.0009 nat worse than scaled (p = 0.031, 6 seeds), by less than 0.01 nat (equivalence test, p < 0.001)");
    CHECK(say(of({-0.023, 0.02, -0.02, 0.015, -0.015, 0.005}, question)) ==
          "additive and scaled: no conclusion: difference −0.003 ± 0.020 nat (p = 0.78, 6 seeds)");
    CHECK(say(of({-0.003}, question)) == "additive and scaled: no conclusion: difference −0.003 nat (p = 1, 1 seed)");
    CHECK(say(of({0, 0}, question)) == "additive and scaled are identical on all 2 seeds");
    CHECK(say(of({}, question)) == "additive and scaled: nothing to compare: no seed in common");
    CHECK(sentence("rope", "learned", "", of({0.5, 0.5, 0.5, 0.5, 0.5, 0.5}), {.better = Better::higher}) ==
          "rope is 0.5 better than learned (p = 0.031, 6 seeds)");
    CHECK(name(Verdict::unclear) == "unclear");
  }

  TEST_CASE("an interval that excludes 0 and no verdict: the sentence says why") {
    auto const say = [](Comparison const& c) { return sentence("additive", "scaled", "nat", c, {}); };
    CHECK(
        say(of({0.2, 0.3, 0.2, 0.3, 0.25})) ==
        "additive and scaled: no conclusion: difference 0.25 ± 0.06 nat (p = 0.062, 5 seeds); its interval excludes 0, but 5 seeds cannot "
        "reach p ≤ 0.05");
    BySeed const baseline{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}};
    BySeed const arm{{1, -0.1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}};
    std::vector<BySeed> arms{arm};
    for (int other = 1; other < 4; ++other) {  // which reach as much by other flips
      arms.push_back(arm);
      arms.back()[1] = 1, arms.back()[other + 1] = -0.1;
    }
    auto const corrected = compare(arms, baseline, {}).front();
    CHECK((corrected.arms == 4 && corrected.p_alone <= 0.05 && corrected.p > 0.05));
    CHECK(say(corrected).ends_with("; its interval excludes 0, and p = 0.031 alone, but not corrected for 4 arms"));
  }

  TEST_CASE("two seeds, or no margin, never show that there is no difference") {
    CHECK(of({0.003, 0.0031}, {.margin = 0.1}).verdict == Verdict::unclear);
    CHECK(of({0.003, 0.0031, 0.0029}, {.margin = 0.1}).verdict == Verdict::equivalent);
    CHECK(of({0.003, 0.0031, 0.0029}).verdict == Verdict::unclear);
  }

  TEST_CASE("least squares: Anscombe's first data set (Anscombe 1973; SciPy's linregress)") {
    std::vector<double> const x{10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5};
    std::vector<double> const y{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68};
    auto const line = fit_line(x, y);
    CHECK(line.slope == Approx(0.5000909090909091).epsilon(1e-12));
    CHECK(line.intercept == Approx(3.0000909090909103).epsilon(1e-12));
    CHECK(*line.standard_error == Approx(0.11790550059563408).epsilon(1e-12));
    CHECK(line.interval->low == Approx(0.23337013639193327).epsilon(1e-10));
    CHECK(line.interval->high == Approx(0.766811681789885).epsilon(1e-10));

    auto const two = fit_line(std::vector{0.0, 2.0}, std::vector{1.0, 5.0});
    CHECK((two.slope == 2 && two.intercept == 1 && !two.standard_error && !two.interval));
    CHECK_THROWS_AS(fit_line(std::vector{1.0, 1.0}, std::vector{1.0, 5.0}), Error);
    CHECK_THROWS_AS(fit_line(std::vector{1.0}, std::vector{1.0}), Error);
    CHECK_THROWS_AS(fit_line(std::vector{1.0, 2.0}, std::vector{1.0}), Error);
  }
}
