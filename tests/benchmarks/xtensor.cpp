// xtensor's views, reductions and transposes beside the engine's own loops, one thread: the figures of autograd/README.md. From the
// project's root, after a build:
//
//     g++ -std=c++20 -O3 -DNDEBUG -march=native -I. tests/benchmarks/xtensor.cpp build/release/libheed_autograd.a
//         -lopenblas -lfmt -o build/xtensor && build/xtensor

#include "autograd/xtensor.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#if __has_include(<xtensor/views/xindex_view.hpp>)
#include <xtensor/misc/xsort.hpp>
#else
#include <xtensor/xsort.hpp>
#endif

#include "autograd/graph.hpp"
#include "autograd/ops/operations.hpp"
#include "autograd/parallel.hpp"
#include "autograd/random.hpp"

namespace {

using namespace heed;

/// The least of 200 calls, in µs.
template <class F>
double min_time(F const& f) {
  using Clock = std::chrono::steady_clock;
  double fastest = 1e300;
  for (int i = 0; i < 200; ++i) {
    auto const begin = Clock::now();
    f();
    fastest = std::min(fastest, std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return fastest;
}

/// Both in turn, twice, the least of each.
template <class Own, class Xtensor>
void compare(char const* family, Own const& own, Xtensor const& xtensor) {
  double a = min_time(own), b = min_time(xtensor);
  a = std::min(a, min_time(own)), b = std::min(b, min_time(xtensor));
  std::printf("| %s | %.1f | %.1f | %.2f |\n", family, a, b, b / a);
}

Tensor normal(Shape const& shape) { return Tensor::normal(shape, Stream(1, "xtensor"), DType::float32); }

/// A new array of `shape` that takes what f assigns to its adaptor.
template <class F>
Tensor filled(Shape const& shape, F const& f) {
  Tensor y(shape, DType::float32);
  f(as_xtensor<float>(y));
  return y;
}

template <std::size_t N>
auto fixed(Tensor const& x) {  // of a rank that is known
  std::array<std::size_t, N> shape;
  std::copy(x.shape().begin(), x.shape().end(), shape.begin());
  return xt::adapt(x.data<float>().data(), static_cast<std::size_t>(x.elements()), xt::no_ownership(), shape);
}

}  // namespace

int main() {
  set_threads(1);
  NoGrad const quiet;
  Tensor const square = normal({1000, 1000}), row = normal({1000}), cube = normal({12, 64, 64}), wide = normal({768, 64});
  auto const s = fixed<2>(square);
  std::puts("| family | own µs | xtensor µs | ratio |\n| --- | --- | --- | --- |");
  compare(
      "x / (1 + e^−x), [1000, 1000]", [&] { return silu(square); }, [&] { return copy_xtensor(s / (1.0F + xt::exp(-s))); });
  compare(
      "a + b", [&] { return square + square; }, [&] { return copy_xtensor(s + s); });
  compare(
      "a row added", [&] { return square + row; }, [&] { return copy_xtensor(s + fixed<1>(row)); });
  compare(
      "slice of the last axis", [&] { return slice(square, 1, 100, 900); },
      [&] { return copy_xtensor(xt::view(s, xt::all(), xt::range(100, 900))); });
  compare(
      "slice of every second", [&] { return slice(square, 1, 100, 900, 2); },
      [&] { return copy_xtensor(xt::view(s, xt::all(), xt::range(100, 900, 2))); });
  compare(
      "concatenate, pad: assignment to a view",
      [&] {
        return concatenate({square, square}, 1);
      },
      [&] {
        return filled({1000, 2000}, [&](auto y) {
          xt::view(y, xt::all(), xt::range(0, 1000)) = s;
          xt::view(y, xt::all(), xt::range(1000, 2000)) = s;
        });
      });
  compare(
      "transpose of outer axes, [12, 64, 64]", [&] { return transpose(cube, 0, 1); },
      [&] {
        return copy_xtensor(xt::transpose(fixed<3>(cube), {1, 0, 2}));
      });
  compare(
      "transpose, [1000, 1000]", [&] { return transpose(square, 0, 1); }, [&] { return copy_xtensor(xt::transpose(s)); });
  std::vector<Index> tokens(512);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Index>(i * 37 % 1000);
  Tensor const index = Tensor::of(tokens, {512});
  compare(
      "rows by number, 512 of 1,000", [&] { return embedding(square, index); },
      [&] { return copy_xtensor(xt::view(s, xt::keep(tokens), xt::all())); });
  compare(
      "comparison", [&] { return greater(square, row); }, [&] { return copy_xtensor(xt::cast<float>(s > fixed<1>(row))); });
  compare(
      "sum of rows", [&] { return sum(square, {1}); }, [&] { return copy_xtensor(xt::sum(s, {1}, xt::evaluation_strategy::immediate)); });
  compare(
      "sum of columns", [&] { return sum(square, {0}); },
      [&] { return copy_xtensor(xt::sum(s, {0}, xt::evaluation_strategy::immediate)); });
  compare(
      "running sum", [&] { return cumsum(square, 1); }, [&] { return copy_xtensor(xt::cumsum(s, 1)); });
  compare(
      "largest of each row: argmax", [&] { return argmax(square, 1); }, [&] { return copy_xtensor(xt::cast<Index>(xt::argmax(s, 1))); });
  compare(
      "one-hot, 512 of 1,000", [&] { return one_hot(index, 1000, DType::float32); },
      [&] {
        auto const columns = xt::view(xt::adapt(tokens, std::array<std::size_t, 1>{512}), xt::all(), xt::newaxis());
        return copy_xtensor(xt::cast<float>(xt::equal(columns, xt::arange<Index>(1000))));
      });
  Tensor const addends = normal({512, 1000});
  compare(
      "rows added by number, 512 to 1,000", [&] { return embedding_transposed(addends, index, 1000); },
      [&] {
        return filled({1000, 1000}, [&](auto y) {
          y.fill(0);
          for (std::size_t i = 0; i < tokens.size(); ++i) xt::view(y, tokens[i], xt::all()) += xt::view(fixed<2>(addends), i, xt::all());
        });
      });
  Tensor const images = normal({8, 3, 32, 32}), filters = normal({16, 3, 3, 3});
  compare(
      "3 × 3 convolution of [8, 3, 32, 32]: all of it; its windows alone", [&] { return conv2d(images, filters, Tensor(), 1, 0); },
      [&] {
        return filled({8, 27, 30, 30}, [&](auto y) {
          auto const x = fixed<4>(images);
          for (std::size_t window = 0; window < 27; ++window) {
            auto const row = window / 3 % 3, column = window % 3;
            xt::view(y, xt::all(), window, xt::all(), xt::all()) =
                xt::view(x, xt::all(), window / 9, xt::range(row, row + 30), xt::range(column, column + 30));
          }
        });
      });
  compare(
      "softmax, [768, 64]", [&] { return softmax(wide, -1); },
      [&] {
        auto const x = fixed<2>(wide);
        auto const maxima = xt::eval(xt::amax(x, {1}, xt::keep_dims));
        auto const e = xt::eval(xt::exp(x - maxima));
        return copy_xtensor(e / xt::sum(e, {1}, xt::keep_dims));
      });
}
