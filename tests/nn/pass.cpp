#include "nn/pass.hpp"

#include "autograd/memory.hpp"
#include "autograd/ops/shape.hpp"
#include "tests/test.hpp"

using namespace heed;

TEST_SUITE("pass") {
  TEST_CASE("rows that grow are all rows in order, and what was returned before stays") {
    for (auto const dtype : {DType::float32, DType::float64}) {
      GrowingRows kept;
      Tensor const all = Tensor::normal({1, 40, 3}, Stream(1, "rows"), dtype);
      std::vector<Tensor> returned;
      Index count = 0;
      for (Index const n : {2, 1, 1, 1, 5, 0, 30}) {
        returned.push_back(kept.append(slice(all, 1, count, count + n)));
        count += n;
        for (Tensor const& so_far : returned) CHECK(so_far.to_vector() == slice(all, 1, 0, so_far.size(1)).to_vector());
        CHECK(returned.back().shape() == Shape{1, count, 3});
      }
      CHECK(returned[2].shares_array_with(returned[1]));  // written where there was room
    }
  }

  TEST_CASE("rows of a sliding window: the last, what was returned before stays, and the array does not grow") {
    Index const length = 500, width = 3;
    for (Index const sees : {1, 2, 7}) {
      GrowingRows kept;
      Tensor const all = Tensor::normal({1, length, width}, Stream(1, "rows"), DType::float64);
      std::vector<Tensor> returned;
      std::vector<Index> firsts;
      Index copies = 0;
      double const* origin = nullptr;  // where the sequence's first row would stand
      for (Index count = 0, n = 100; count < length; count += n, n = count == 300 ? 5 : 1) {
        returned.push_back(kept.append(slice(all, 1, count, count + n), sees));
        firsts.push_back(std::max<Index>(0, count - (sees - 1)));
        CHECK(kept.dropped() == firsts.back());
        CHECK(returned.back().size(1) == count + n - firsts.back());
        double const* const before = std::exchange(origin, returned.back().data<double>().data() - firsts.back() * width);
        copies += before != origin;
      }
      for (std::size_t i = 0; i < returned.size(); ++i)
        CHECK(returned[i].to_vector() == slice(all, 1, firsts[i], firsts[i] + returned[i].size(1)).to_vector());
      CHECK(copies <= 400 / sees + 4);
      returned.clear();
      Index const with_rows = memory_use().live;
      kept = {};
      CHECK(with_rows - memory_use().live < 3 * 8 * width * sees + 256);
    }
  }

  TEST_CASE("several sequences grow together, and some of them go on") {
    GrowingRows kept;
    Tensor const all = Tensor::normal({3, 9, 2}, Stream(1, "rows"), DType::float64);
    for (Index const end : {1, 2, 5}) CHECK(kept.append(slice(all, 1, end == 5 ? 2 : end - 1, end)).size(0) == 3);
    kept.keep(std::vector<Index>{1, 2, 0});
    kept.keep(std::vector<Index>{1, 2});
    Tensor const both = concatenate({all.rows(2, 1), all.rows(0, 1)}, 0);
    CHECK(kept.append(slice(both, 1, 5, 9)).to_vector() == both.to_vector());
    kept.keep(std::vector<Index>{1, 0, 1});
    Tensor const three = concatenate({all.rows(0, 1), all.rows(2, 1), all.rows(0, 1)}, 0);
    CHECK(kept.append(slice(three, 1, 0, 1), 4).to_vector() == concatenate({slice(three, 1, 6, 9), slice(three, 1, 0, 1)}, 1).to_vector());
    kept.keep(std::vector<Index>{2});
    Tensor const one = all.rows(0, 1);
    CHECK(kept.append(slice(one, 1, 0, 0)).to_vector() == concatenate({slice(one, 1, 6, 9), slice(one, 1, 0, 1)}, 1).to_vector());
  }

  TEST_CASE("rows of more sequences, of another width or type, or with a gradient are refused") {
    GrowingRows kept;
    kept.append(Tensor::zeros({1, 2, 3}, DType::float32));
    CHECK_THROWS_WITH_AS(kept.append(Tensor::zeros({2, 1, 3}, DType::float32)), doctest::Contains("as many sequences as before"), Error);
    CHECK_THROWS_AS(kept.append(Tensor::zeros({1, 1, 4}, DType::float32)), Error);
    CHECK_THROWS_AS(kept.append(Tensor::zeros({1, 1, 3}, DType::float64)), Error);
    CHECK_THROWS_WITH_AS(kept.append(Tensor::zeros({1, 1, 3}, DType::float32).set_requires_grad()), doctest::Contains("gradient"), Error);
  }
}
