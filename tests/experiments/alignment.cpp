#include "autograd/error.hpp"
#include "experiments/metric/alignment_error.hpp"
#include "tests/test.hpp"

TEST_SUITE("alignment") {
  using namespace heed;

  namespace {

  double rate(std::vector<Link> const& found, std::vector<Link> const& known) {
    return alignment_error_rate(alignment_counts(found, known));
  }

  }  // namespace

  TEST_CASE("error rates of published and small examples") {
    // The example in the documentation of NLTK's alignment_error_rate: of three sure links one is found.
    CHECK(rate({{0, 0}, {1, 2}, {2, 1}}, {{0, 0}, {1, 1}, {2, 2}}) == doctest::Approx(0.6666666666666667));
    CHECK(rate({{0, 0}, {1, 1}}, {{0, 0}, {1, 1}}) == 0);
    CHECK(rate({{0, 1}}, {{0, 0}}) == 1);
    // A = 3, S = 2, of A one is sure and one more possible: 1 − (1 + 2) / (3 + 2).
    CHECK(rate({{0, 0}, {1, 1}, {2, 0}}, {{0, 0}, {1, 1, false}, {1, 2, false}, {2, 2}}) == doctest::Approx(0.4));
    // Possible links need not be found; whoever finds just one is without error.
    CHECK(rate({{0, 0}, {1, 2}}, {{0, 0}, {1, 1, false}, {1, 2, false}}) == 0);
    // A link counts once, however often it is given.
    CHECK(rate({{0, 0}, {0, 0}}, {{0, 0}, {0, 0}}) == 0);
    CHECK_THROWS_AS(rate({}, {}), Error);
    CHECK_THROWS_AS(rate({}, {{0, 0, false}}), Error);
  }

  TEST_CASE("counts of a corpus are sums, and its rate is no mean of rates") {
    auto counts = alignment_counts({{0, 0}, {1, 1}, {2, 2}}, {{0, 0}, {1, 1}, {2, 2}});
    counts += alignment_counts({{0, 1}}, {{0, 0}});
    CHECK(counts == AlignmentCounts{4, 4, 3, 3});
    CHECK(alignment_error_rate(counts) == doctest::Approx(0.25));
  }

  TEST_CASE("the hard alignment of weights: the place with the largest, where an alignment is known") {
    auto const weights = Tensor::of({0.1, 0.7, 0.2,  //
                                     0.3, 0.3, 0.4,  //
                                     0.5, 0.5, 0.0,  //
                                     0.0, 0.1, 0.9},
                                    {4, 3}, DType::float32);
    std::vector<Link> const known{{0, 1}, {1, 2}, {2, 0, false}, {2, 1, false}};
    CHECK(hard_links(weights, 3, known) == std::vector<Link>{{0, 1}, {1, 2}, {2, 0}});
    CHECK(hard_links(weights, 2, known) == std::vector<Link>{{0, 1}, {1, 0}, {2, 0}});  // what stands behind is padding
    CHECK(hard_links(weights, 3, {}).empty());
    CHECK_THROWS_WITH_AS(hard_links(weights, 3, {{4, 0}}), "hard alignment: weights [4, 3] have no target 4", Error);
    CHECK_THROWS_WITH_AS(hard_links(weights, 4, known), doctest::Contains("weights [4, 3] of 4 sources"), Error);
    CHECK_THROWS_AS(hard_links(weights, 0, known), Error);
    auto const broken = Tensor::of({1, std::numeric_limits<double>::quiet_NaN()}, {1, 2}, DType::float64);
    CHECK_THROWS_WITH_AS(hard_links(broken, 2, {{0, 0}}), "hard alignment: a weight of target 0 is no number", Error);
    CHECK(hard_links(broken, 1, {{0, 0}}) == std::vector<Link>{{0, 0}});
  }
}
