#include "experiments/metric/evidence.hpp"

#include "autograd/random.hpp"
#include "tests/experiments/comparison.hpp"
#include "tests/json.hpp"

TEST_SUITE("evidence") {
  using namespace heed;
  using doctest::Approx, test::infinity;
  namespace fs = std::filesystem;

  namespace {

  fs::path oracle() {
    auto const* const golden = test::data_folder("HEED_GOLDEN");
    return golden == nullptr ? fs::path() : fs::path(golden).lexically_normal().parent_path() / "judge" / "golden.json";
  }

  std::vector<double> normals(Stream const& stream, std::size_t count, double mean = 0) {
    std::vector<double> all(count);
    stream.normals(0, all);
    for (double& each : all) each += mean;
    return all;
  }

  std::vector<double> times(double factor, std::vector<double> values) {
    for (double& each : values) each *= factor;
    return values;
  }

  /// After how many pairs there is a verdict; one more than there are without any.
  std::size_t pairs_until_verdict(std::span<double const> differences, Question const& question = {}) {
    for (std::size_t k = 1; k <= differences.size(); ++k)
      if (verdict_by_evidence(differences.first(k), question) != Verdict::unclear) return k;
    return differences.size() + 1;
  }

  void check_end(test::Json const& wanted, double end, double infinite, double spread) {
    if (wanted.is_null())
      CHECK(end == infinite);
    else
      CHECK(std::abs(end - wanted.get<double>()) <= 1e-3 * spread + 1e-15);
  }

  }  // namespace

  TEST_CASE("evidence, intervals and verdicts are the reference's" * doctest::skip(!fs::exists(oracle()))) {
    for (auto const& each : test::Json::parse(test::get(oracle()))) {
      CAPTURE(each["name"]);
      auto const differences = each["differences"].get<std::vector<double>>();
      double const alpha = each["alpha"];
      Question const question{.margin = each["margin"], .confidence = 1 - alpha};
      auto const e = evidence(differences);
      auto const [low, high] = std::ranges::minmax(differences);
      double const spread = std::max(high - low, std::abs(low) * 1e-6);
      for (std::size_t k = 1; k <= differences.size(); ++k) {
        CAPTURE(k);
        CHECK(e[k - 1] == Approx(each["e"][k - 1].get<double>()).epsilon(1e-9));
        std::span const first(differences.data(), k);
        auto const interval = confidence_sequence(first, alpha);
        check_end(each["interval"][k - 1][0], interval.low, -infinity, spread);
        check_end(each["interval"][k - 1][1], interval.high, infinity, spread);
        auto const until = pairs_until_verdict(first, question);
        auto const wanted = each["verdict"][k - 1].get<std::string>();
        auto const verdict = compare_by_evidence(first, question).verdict;
        if (verdict == Verdict::identical) continue;  // for which the reference has no word
        if (until == k) CHECK(name(verdict) == wanted);
        if (until != k && wanted != "unclear") CHECK(verdict != Verdict::unclear);  // kept from before
        if (until > k && wanted == "unclear") CHECK(verdict == Verdict::unclear);
      }
    }
  }

  TEST_CASE("under every choice of signs the mean of evidence is 1, after each pair") {
    std::vector<double> const sizes{0.3, 2.0, 0.0, 1e-3, infinity, 1.0, 40.0};
    std::vector<double> sums(sizes.size());
    for (unsigned signs = 0; signs < 1U << sizes.size(); ++signs) {
      auto flipped = sizes;
      for (std::size_t i = 0; i < sizes.size(); ++i)
        if ((signs >> i & 1U) != 0) flipped[i] = -flipped[i];
      auto const e = evidence(flipped);
      for (std::size_t i = 0; i < sizes.size(); ++i) sums[i] += e[i];
    }
    for (double const sum : sums) CHECK(sum / static_cast<double>(1U << sizes.size()) == Approx(1).epsilon(1e-12));
  }

  TEST_CASE("units do not matter, nor do the largest and smallest doubles") {
    auto const d = normals(Stream(3, "units"), 12, 1);
    auto const e = evidence(d);
    for (double const factor : {1e-300, 1e-12, 1e9, 1e300}) {
      auto const scaled = evidence(times(factor, d));
      for (std::size_t i = 0; i < e.size(); ++i) CHECK(scaled[i] == Approx(e[i]).epsilon(1e-10));
      CHECK(confidence_sequence(times(factor, d)).low == Approx(factor * confidence_sequence(d).low).epsilon(1e-9));
    }
    CHECK_THROWS_WITH_AS(evidence(std::vector{1.0, std::nan("")}), "evidence: NaN is not a difference", Error);
    CHECK(evidence({}).empty());
  }

  TEST_CASE("five pairs tell nothing, six of one sign do; a diverged one is a sign") {
    std::vector<double> d(5, 1.0);
    CHECK(compare_by_evidence(d, {}).verdict == Verdict::unclear);
    CHECK(!compare_by_evidence(d, {}).interval);
    d.push_back(infinity);
    auto const c = compare_by_evidence(d, {});
    CHECK(c.verdict == Verdict::worse);
    CHECK(!c.interval);
    CHECK(lies_between(0.1, infinity, std::vector(6, infinity)));
    CHECK_FALSE(lies_between(0.1, infinity, std::vector(5, infinity)));
    CHECK(*c.e >= 20);
    CHECK(c.p <= 0.05);
    CHECK(compare_by_evidence(times(-1, d), {}).verdict == Verdict::better);
    CHECK(compare_by_evidence(times(-1, d), {.better = Better::higher}).verdict == Verdict::worse);
    CHECK(compare_by_evidence(d, {}, 10).verdict == Verdict::unclear);  // of ten arms
    CHECK(compare_by_evidence(d, {}, 10).p == Approx(10 * c.p));
  }

  TEST_CASE("a verdict is kept; differences of 0 are identical from six pairs on; equivalence goes first") {
    std::vector<double> d(7, -1.0);
    d.insert(d.end(), 7, 3.0);
    auto const c = compare_by_evidence(d, {});
    CHECK(pairs_until_verdict(d) == 6);
    CHECK(*c.e < 20);
    CHECK(c.verdict == Verdict::better);
    CHECK(compare_by_evidence(std::vector(5, 0.0), {}).verdict == Verdict::unclear);
    CHECK(compare_by_evidence(std::vector(6, 0.0), {}).verdict == Verdict::identical);
    CHECK(compare_by_evidence(std::vector(6, 0.01), {.margin = 0.02}).verdict == Verdict::equivalent);
    CHECK(compare_by_evidence(std::vector(6, 0.01), {.margin = 0.01}).verdict == Verdict::worse);
    CHECK(lies_between(0.005, infinity, std::vector(6, 0.01)));
    CHECK(!lies_between(0.01, infinity, std::vector(6, 0.01)));
    CHECK(!lies_between(-infinity, 0.01, std::vector(6, 0.01)));
  }

  TEST_CASE("signs against sizes: the verdict is that of the signs, and the sentence says so; a thousand pairs of one sign are a number") {
    std::vector<double> d(9, -1.0);
    d.push_back(100);
    auto const c = compare_by_evidence(d, {});
    CHECK(c.verdict == Verdict::better);
    auto const said = sentence("b", "a", "nat", c, {});
    CHECK_MESSAGE(said.find("b is better than a on most pairs (e = ") == 0, said);
    CHECK_MESSAGE(said.find("but not in the mean") != std::string::npos, said);
    std::vector<double> many(3000, 1.0);
    many.push_back(-1);
    CHECK(std::isfinite(evidence(many).back()));
    CHECK(evidence(many).back() > 1e200);
    CHECK(lies_between(0.5e300, infinity, times(1e300, std::vector(6, 1.0))));
  }

  TEST_CASE("who looks after every pair errs in at most 5 % of loops, and finds what there is in time") {
    std::size_t wrong = 0;
    std::vector<std::size_t> pairs;
    constexpr std::size_t loops = 400;
    for (std::size_t i = 0; i < loops; ++i) {
      auto const stream = Stream(0, "looks").child(i);
      if (pairs_until_verdict(normals(stream, 40)) <= 40) ++wrong;
      pairs.push_back(pairs_until_verdict(normals(stream.child("real"), 40, 2)));
    }
    CHECK(wrong <= 30);  // of 20 expected at most: one in a hundred would see more
    CHECK(wrong >= 4);   // a test that never errs is not the one described
    std::ranges::nth_element(pairs, pairs.begin() + loops / 2);
    CHECK(pairs[loops / 2] <= 7);
  }

  TEST_CASE("pairs that would tell, and what pairs tell") {
    auto const d = normals(Stream(5, "tell"), 8, 1);
    auto const enough = pairs_that_tell(d, 20);
    REQUIRE(enough);
    CHECK(*enough >= 8);
    CHECK(*enough <= 40);
    CHECK(*pairs_that_tell(d, 400) > *enough);
    CHECK(!pairs_that_tell(std::vector{1.0, 1.0}, 20));
    CHECK(!pairs_that_tell(std::vector{1.0, -1.0, 1.0, -1.0}, 20));
    CHECK(!difference_told(5));
    CHECK(seeds_for_verdict(true, 1) == 6);
    CHECK(seeds_for_verdict(true, 3) == 8);
    CHECK(seeds_for_verdict(false, 3) == 6);
    CHECK(*difference_told(12) < *difference_told(8));
    CHECK(*difference_told(19) == Approx(1).epsilon(0.15));  // judge.md: one standard deviation in 19 pairs, in 80 % of cases
  }

  TEST_CASE("e-BH: what stands of several verdicts") {
    CHECK(standing(std::vector{25.0}) == std::vector{true});
    CHECK(standing(std::vector{25.0, 1.0}) == std::vector{false, false});
    CHECK(standing(std::vector{25.0, 1.0, 60.0}) == std::vector{false, false, true});
    CHECK(standing(std::vector{30.0, 1.0, 60.0}) == std::vector{true, false, true});
    CHECK(standing({}).empty());
  }
}
