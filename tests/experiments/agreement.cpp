#include "experiments/study/softmax_scaling.hpp"
#include "tests/test.hpp"

TEST_SUITE("agreement") {
  using namespace heed;

  TEST_CASE("agreement counts a draw once, however many of its numbers move together, and says what is expected") {
    std::vector<ScalingCell> cells;
    for (Index draw = 0; draw < 40; ++draw) {
      double const z = draw % 2 == 0 ? 1 : -1;
      for (char const* scale : {"none", "rsqrt", "inverse"}) {
        ScalingCell& cell = cells.emplace_back(ScalingCell{"logits", scale, 1 + draw, 10});
        // All numbers of one draw lie as far off, and there are many of the first.
        for (auto const q : {Quantity::trace, Quantity::entropy, Quantity::max_weight})
          if (draw == 0 || q == Quantity::trace) at(cell.values, q) = Measured{draw == 0 ? 1.3 : 1 + 0.1 * z, 0.1, 1.0};
      }
    }
    at(cells.front().values, Quantity::logit_variance) = Measured{1, 0, 1.0};  // does not vary
    auto const scores = scores_of(cells);
    CHECK(scores.size() == 9 + 39 * 3);
    auto const agreement = agreement_of(scores);
    CHECK(agreement.draws == 40);
    CHECK(agreement.mean_square == doctest::Approx((9 + 39) / 40.0));
    CHECK(agreement.farthest.z == doctest::Approx(3));
    CHECK(agreement.expected.low == doctest::Approx(24.43304 / 40));  // of χ² with 40 degrees of freedom, as printed tables have them
    CHECK(agreement.expected.high == doctest::Approx(59.34171 / 40));
  }
}
