// Whether a metric rises with a key: rank correlations, by seed.

#include "autograd/random.hpp"
#include "experiments/ablation/results.hpp"
#include "tests/test.hpp"

TEST_SUITE("trends") {
  using namespace heed;

  TEST_CASE("Spearman's correlation of known lists, with ties, of constants") {
    std::vector<double> const x{1, 2, 3, 4, 5};
    CHECK(spearman(x, std::vector<double>{2, 4, 8, 16, 32}) == doctest::Approx(1));
    CHECK(spearman(x, std::vector<double>{5, 4, 3, 2, 1}) == doctest::Approx(-1));
    CHECK(spearman(x, std::vector<double>{1, 3, 2, 5, 4}) == doctest::Approx(0.8));  // 1 − 6 Σd²/(n(n² − 1)), Σd² = 4
    // Ranks 1, 2.5, 2.5, 4 beside 1 … 4: 4.5/√(4.5 · 5).
    CHECK(spearman(std::vector<double>{1, 2, 2, 3}, std::vector<double>{1, 2, 3, 4}) == doctest::Approx(4.5 / std::sqrt(22.5)));
    CHECK(std::isnan(spearman(x, std::vector<double>{1, 1, 1, 1, 1})));
  }

  TEST_CASE("a key of three numbers has a trend, where every seed is there; its sentence says how sure it is") {
    std::vector<KeyValues> keys;
    std::vector<BySeed> values;
    for (int k = 0; k < 4; ++k) {
      keys.push_back({{"init.layers", std::to_string(k)}});
      values.push_back({{3, 0.4 + (k == 2 ? 0.35 : 0.1 * k)}});
      for (int seed : {1, 2, 4, 5, 6}) values.back()[seed] = 0.5 + 0.1 * seed + 0.05 * k;
    }
    auto const trends = trends_of(keys, values, "validation.accuracy");
    REQUIRE(trends.size() == 1);
    CHECK(trends.front().values == 4);
    CHECK(trends.front().correlation.count == 6);
    CHECK(trends.front().p == 1.0 / 32);
    CHECK(trends.front().sentence.starts_with("validation.accuracy rises with init.layers: Spearman's ρ 0.9"));
    values[1].erase(3);
    auto const fewer = trends_of(keys, values, "m").front();
    CHECK(fewer.correlation.count == 5);
    CHECK(fewer.sentence.starts_with("m neither rises nor falls clearly with init.layers"));  // five seeds cannot reach 0.05
    for (int seed : {1, 2, 4, 5}) values[2][seed] = INFINITY;
    CHECK(trends_of(keys, values, "m").empty());
  }

  TEST_CASE("noise has a trend in one ablation of twenty at most, a valley none") {
    Stream const noise(1, "noise");
    std::uint64_t drawn = 0;
    int claims = 0;
    for (int ablation = 0; ablation < 400; ++ablation) {
      std::vector<KeyValues> keys;
      std::vector<BySeed> values;
      for (int arm = 0; arm < 3 + ablation % 3; ++arm) {
        keys.push_back({{"model.width", std::to_string(8 << arm)}});
        for (int seed = 0; seed < 2 + ablation % 7; ++seed) values.resize(keys.size()), values.back()[seed] = noise.normal(drawn++);
      }
      for (auto const& trend : trends_of(keys, values, "m")) claims += trend.sentence.find(" clearly ") == std::string::npos ? 1 : 0;
    }
    CHECK(claims <= 20);
    std::vector<KeyValues> const keys{{{"k", "1"}}, {{"k", "2"}}, {{"k", "3"}}};
    std::vector<BySeed> valley(3);
    for (int seed = 0; seed < 8; ++seed)
      for (std::size_t arm = 0; arm < 3; ++arm) valley[arm][seed] = std::array{2., 1., 3.}[arm] + 0.1 * noise.normal(drawn++);
    CHECK(trends_of(keys, valley, "m").front().sentence.starts_with("m changes with k, but not in one direction: "));
  }

  TEST_CASE("values that go up and down have no clear trend") {
    std::vector<KeyValues> keys;
    for (int k = 0; k < 3; ++k) keys.push_back({{"model.heads", std::to_string(1 << k)}});
    std::vector<BySeed> const values{{{1, 0.}, {2, 2.}, {3, 1.}}, {{1, 1.}, {2, 1.}, {3, 2.}}, {{1, 2.}, {2, 0.}, {3, 0.}}};
    CHECK(trends_of(keys, values, "m").front().sentence.starts_with("m neither rises nor falls clearly with model.heads"));
  }

  TEST_CASE("in a grid a trend is told for each value of the other keys; words and two values have none") {
    std::vector<KeyValues> keys;
    std::vector<BySeed> values;
    for (std::string const from : {"pretrain", "none"})
      for (int size : {100, 1000, 5000}) {
        keys.push_back({{"init.from", from}, {"data.size", std::to_string(size)}});
        values.push_back({{1, size * 1.0}, {2, size * 2.0}});
      }
    auto const trends = trends_of(keys, values, "m");
    REQUIRE(trends.size() == 2);
    CHECK(trends[0].elsewhere == "from none");
    CHECK(trends[0].sentence ==
          "m neither rises nor falls clearly with data.size (from none): Spearman's ρ 1.00, mean over 2 seeds, p = 0.5");
    keys.resize(2), values.resize(2);
    CHECK(trends_of(keys, values, "m").empty());
  }
}
