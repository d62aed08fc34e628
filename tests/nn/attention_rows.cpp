// Statistics of each row of attention: what the kernels measure on their way is what the definition says.

#include "autograd/attention/row_statistics.hpp"
#include "tests/nn/variants.hpp"

TEST_SUITE("attention_rows") {
  using namespace heed;
  using test::some, test::Subject, test::Variant, test::variants;

  namespace {

  template <class Call>
  Tensor told(Call const& call) {
    test::RecordedPass const recorded({.rows = true});
    call(recorded.pass);
    REQUIRE(recorded.records().size() == 1);
    return recorded.records()[0].rows.at(0);
  }

  void check_agree(Tensor const& found, Tensor const& expected, double tolerance) {
    REQUIRE(found.shape() == expected.shape());
    for (Index i = 0; i < expected.elements(); ++i) {
      INFO("statistic ", i % row_statistics, " of row ", i / row_statistics, ": ", found.at(i), ", by definition ", expected.at(i));
      double const x = expected.at(i);
      bool const same = std::isnan(x) ? std::isnan(found.at(i)) : std::abs(found.at(i) - x) <= tolerance * std::max(1.0, std::abs(x));
      CHECK(same);
      if (!same) return;
    }
  }

  }  // namespace

  TEST_CASE("the kernels' are the reference's, for every variant, precision and visibility; and the context stays as it is") {
    auto const lengths = [](std::vector<Index> const& values) { return Tensor::of(values, {std::ssize(values)}); };
    std::vector<Visibility> const visibilities{
        test::seen(true),
        {.causal = false, .lengths = lengths({9, 0}), .offset = 2},
        {.causal = true, .lengths = {}, .offset = 4, .query_lengths = lengths({5, 1})},
        test::seen(true, {9, 0}, 2),
        {.causal = true, .lengths = {}, .offset = 4, .query_lengths = {}, .sees = 6, .first_key = 3}};
    for (Variant const& variant : variants()) {
      INFO(variant.name());
      for (auto const& [dtype, tolerance] : {std::pair{DType::float64, 1e-12}, std::pair{DType::float32, 2e-4}}) {
        Subject const subject(variant, {2, 5, 9, 2, 4, 3}, Parameters(3, dtype));
        Tensor const q = some({2, 5, 8}, "query", dtype), k = some({2, 9, 8}, "key", dtype), v = some({2, 9, 6}, "value", dtype);
        for (Visibility const& sees : visibilities) {
          Tensor context;
          Tensor const found = told([&](Pass const& pass) { context = subject(q, k, v, sees, pass); });
          check_agree(found, told([&](Pass const& pass) { subject.reference(q, k, v, sees, pass); }), tolerance);
          CHECK(context.to_vector() == subject(q, k, v, sees).to_vector());
        }
      }
    }
  }

  TEST_CASE("of weights and scores that are known") {
    Tensor const scores = Tensor::of(std::vector<double>{1, 2, 6, 9, 4, 9, 9, 9, 1, 1, 1, 1}, {1, 1, 3, 4});
    Tensor const weights = Tensor::of(std::vector<double>{0.5, 0.5, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 3, 4});
    Tensor const visible = Tensor::of(std::vector<double>{1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0}, {1, 1, 3, 4});
    std::vector<double> const rows = attention_rows(scores, weights, visible, 3).to_vector();
    std::vector<double> const first{2, 1.5 * std::log(2.0), 1, 0.25 * 3 + 0.25 * 2 + 0.5 * 1, 0.25, 0.375, 0.15625, 3, 7, 6};
    for (std::size_t k = 0; k < first.size(); ++k) CHECK(rows[k] == doctest::Approx(first[k]).epsilon(1e-14));
    std::vector<double> const second{2, 0, 2, 4, 1, 1, 1, 4};  // one key
    for (std::size_t k = 0; k < second.size(); ++k) CHECK(rows[first.size() + k] == second[k]);
    CHECK(std::isnan(rows[first.size() + 8]));
    CHECK(rows[first.size() + 9] == 4);
    CHECK(rows[20] == 0);  // no weight
    for (std::size_t k = 21; k < 30; ++k) CHECK(std::isnan(rows[k]));
  }
}
