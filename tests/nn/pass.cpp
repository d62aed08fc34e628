#include "nn/pass.hpp"

#include <doctest/doctest.h>

#include "autograd/error.hpp"

using namespace heed;

TEST_SUITE("pass") {
  TEST_CASE("rows that grow are all rows in order, and what was returned before stays") {
    for (auto const dtype : {DType::float32, DType::float64}) {
      GrowingRows kept;
      Tensor const all = Tensor::normal({1, 40, 3}, Stream(1, "rows"), dtype);
      std::vector<Tensor> returned;
      std::int64_t count = 0;
      for (std::int64_t const n : {2, 1, 1, 1, 5, 0, 30}) {
        Tensor const fresh = slice(all, 1, count, count + n);
        count += n;
        returned.push_back(kept.append(fresh));
        for (Tensor const& so_far : returned) CHECK(so_far.to_vector() == slice(all, 1, 0, so_far.size(1)).to_vector());
        CHECK(returned.back().shape() == Shape{1, count, 3});
      }
      CHECK(returned[2].shares_array_with(returned[1]));  // written where there was room
    }
  }

  TEST_CASE("rows of several sequences, of another width or type, or with a gradient are refused") {
    GrowingRows kept;
    kept.append(Tensor::zeros({1, 2, 3}, DType::float32));
    CHECK_THROWS_WITH_AS(kept.append(Tensor::zeros({2, 1, 3}, DType::float32)), doctest::Contains("one sequence"), Error);
    CHECK_THROWS_AS(kept.append(Tensor::zeros({1, 1, 4}, DType::float32)), Error);
    CHECK_THROWS_AS(kept.append(Tensor::zeros({1, 1, 3}, DType::float64)), Error);
    CHECK_THROWS_WITH_AS(kept.append(Tensor::zeros({1, 1, 3}, DType::float32).set_requires_grad()), doctest::Contains("gradient"), Error);
  }
}
