// F1 and Matthews correlation of a confusion matrix.

#include "experiments/metric/labels.hpp"
#include "tests/test.hpp"

TEST_SUITE("confusion") {
  using namespace heed;

  TEST_CASE("two classes by the formulas of true and false positives and negatives") {
    double const tn = 50, fp = 10, fn = 5, tp = 35;
    ConfusionMatrix const counts{{50, 10}, {5, 35}};
    CHECK(f1(counts, 1) == doctest::Approx(2 * tp / (2 * tp + fp + fn)).epsilon(1e-12));
    CHECK(f1(counts, 0) == doctest::Approx(2 * tn / (2 * tn + fp + fn)).epsilon(1e-12));
    CHECK(macro_f1(counts) == doctest::Approx((f1(counts, 0) + f1(counts, 1)) / 2).epsilon(1e-12));
    double const matthews = (tp * tn - fp * fn) / std::sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn));
    CHECK(matthews_correlation(counts) == doctest::Approx(matthews).epsilon(1e-12));
  }

  TEST_CASE("known values: scikit-learn's examples") {
    CHECK(matthews_correlation({{0, 1}, {1, 2}}) == doctest::Approx(-1.0 / 3).epsilon(1e-12));
    ConfusionMatrix const three{{2, 0, 0}, {1, 0, 1}, {0, 2, 0}};
    CHECK(macro_f1(three) == doctest::Approx(0.26666666666666666).epsilon(1e-12));
    CHECK(f1(three, 0) == doctest::Approx(0.8).epsilon(1e-12));
    CHECK(f1(three, 1) == 0);
  }

  TEST_CASE("all right is 1, all wrong of two is −1, and what divides by zero is 0") {
    CHECK(matthews_correlation({{3, 0, 0}, {0, 2, 0}, {0, 0, 5}}) == doctest::Approx(1).epsilon(1e-12));
    CHECK(matthews_correlation({{0, 4}, {6, 0}}) == doctest::Approx(-1).epsilon(1e-12));
    CHECK(matthews_correlation({{4, 0}, {6, 0}}) == 0);
    CHECK(matthews_correlation({{4, 6}, {0, 0}}) == 0);
    CHECK(matthews_correlation({{0, 0}, {0, 0}}) == 0);
    CHECK(f1({{4, 0}, {0, 0}}, 1) == 0);
    CHECK(f1({{4, 0}, {6, 0}}, 1) == 0);
    CHECK(macro_f1({{4, 0}, {0, 0}}) == 1);
    CHECK(macro_f1({{0, 0}, {0, 0}}) == 0);
  }
}
