#include "autograd/ops/rounded_weights.hpp"

#include "autograd/blas/products.hpp"
#include "tests/autograd/tensors.hpp"

TEST_SUITE("rounded_weights") {
  using namespace heed;

  TEST_CASE("rounded once, they give a row the bits of weights rounded as they are read") {
    WithProducts const chosen({.bfloat16 = true});
    std::vector<std::pair<Index, Index>> const sizes{{1, 1}, {3, 15}, {5, 17}, {19, 32}, {64, 33}, {65, 128}, {403, 300}, {1500, 70}};
    for (auto const& size : sizes) {
      Index const m = size.first, k = size.second;
      INFO("m ", m, ", k ", k);
      Tensor w = test::normal({m, k}, "w", DType::float32);
      Tensor const bias = test::normal({m}, "b", DType::float32), residual = test::normal({1, m}, "r", DType::float32);
      auto const results = [&](RoundedWeights* rounded) {
        std::optional<RoundedWeights::Use> use;
        if (rounded != nullptr) use.emplace(*rounded);
        std::vector<test::Values> all;
        for (char const* const row : {"x", "y", "z"})
          for (Tensor const& b : {Tensor(), bias})
            for (Tensor const& r : {Tensor(), residual})
              all.push_back(linear(test::normal({1, k}, row, DType::float32), w, b, r).to_vector());
        return all;
      };
      auto const wanted = results(nullptr);
      for (int const count : {1, 2, 3}) {
        Threads const some(count);
        RoundedWeights weights;
        auto const before = product_flops();
        CHECK(results(&weights) == wanted);
        CHECK(product_flops() - before == 12 * 2 * m * k);
        // Against the promise: what was rounded is read, not this.
        float const kept = std::exchange(w.mutable_data<float>()[0], 9.0F);
        CHECK(results(&weights) == wanted);
        w.mutable_data<float>()[0] = kept;
      }
    }
  }

  TEST_CASE("the right ones, where others come and go, and none where it does not matter") {
    Tensor const x = Tensor::ones({1, 40}, DType::float32), two = Tensor::ones({2, 40}, DType::float32);
    RoundedWeights weights;
    RoundedWeights::Use const use(weights);
    auto const times = [&](Tensor const& row, Tensor const& w) { return linear(row, w, {}); };
    auto const first = [&](Tensor const& row, double value) { return times(row, Tensor::full({3, 40}, value, DType::float32)).at(0); };
    double const exact = 40 * (1 + 0x1p-12);  // of a weight that bfloat16 has not
    CHECK(first(x, 1 + 0x1p-12) == exact);
    WithProducts const chosen({.bfloat16 = true});
    for (double const value : {1 + 0x1p-12, 2.0, 3.0}) {  // the pool would hand the same array out again
      CHECK(first(x, value) == 40 * std::floor(value));
      CHECK(first(two, value) == 40 * std::floor(value));
    }
    CHECK(times(x.to(DType::float64), Tensor::full({3, 40}, 1 + 0x1p-12, DType::float64)).at(0) == exact);
    Tensor const w = test::normal({6, 40}, "w", DType::float32);
    auto const all = times(x, w).to_vector(), some = times(x, w.rows(0, 2)).to_vector();  // which begin at one place
    CHECK(some == std::vector(all.begin(), all.begin() + 2));
    CHECK(times(Tensor::ones({1, 20}, DType::float32), w.viewed({12, 20})).shape() == Shape{1, 12});
    CHECK(std::isinf(first(x, double{std::numeric_limits<float>::max()})));
    CHECK(std::isnan(first(x, std::nan(""))));
    CHECK(times(Tensor::ones({1, 0}, DType::float32), Tensor::ones({3, 0}, DType::float32)).to_vector() == std::vector<double>(3, 0));
    CHECK(times(Tensor::ones({1, 3}, DType::float32), Tensor::ones({0, 3}, DType::float32)).shape() == Shape{1, 0});
  }
}
