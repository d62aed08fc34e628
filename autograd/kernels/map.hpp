#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "autograd/parallel.hpp"
#include "autograd/shape.hpp"
#include "autograd/tensor.hpp"
#include "autograd/xtensor.hpp"

namespace heed::kernels {

/// A formula over values, made a function that xtensor vectorises: given xsimd batches it is the formula; a single element (the tail of
/// an array) is the formula on a batch of copies, so that an element's bits do not depend on where it stands.
template <class Formula>
struct Vectorised {
  Formula formula;

  template <class B, class... Bs>
  B simd_apply(B const& x, Bs const&... xs) const {
    return formula(x, xs...);
  }
  template <class T, class... Ts>
  T operator()(T const& x, Ts const&... xs) const {
    return formula(xsimd::batch<T>(x), xsimd::batch<T>(xs)...).get(0);
  }
};

/// out = formula(x…), element by element over n contiguous elements: one xtensor expression, one vectorised pass.
template <class T, class Formula, class... Source>
void map_span(Formula const& formula, T* out, std::int64_t n, Source const*... x) {
  auto target = span_array(out, n);
  using Expression = xt::xfunction<Vectorised<Formula>, decltype(span_array(x, n))...>;
  xt::noalias(target) = Expression(Vectorised<Formula>{formula}, span_array(x, n)...);
}

/// Reads a broadcast operand a stretch at a time: element i of the output's order, for i in [begin, end), gathered into `scratch`.
class BroadcastReader {
 public:
  BroadcastReader(Shape const& from, Shape const& to);
  bool contiguous() const { return contiguous_; }
  template <class T>
  void gather(T const* source, std::int64_t begin, std::int64_t count, T* scratch) const;

 private:
  // The output's axes, neighbours that advance together merged; stride 0 where the operand is repeated.
  std::array<std::int64_t, Shape::max_rank> extents_{};
  std::array<std::int64_t, Shape::max_rank> strides_{};
  std::size_t rank_ = 0;
  bool contiguous_ = true;
};

/// Elements that are worked on at once: an operand that must be gathered first stays in the first-level cache.
inline constexpr std::int64_t map_block = 2048;

/// y = formula(x…) with x broadcast to y's shape. `cost`: nanoseconds an element, roughly.
template <class T, class Formula, std::size_t... I>
void map_broadcast(Formula const& formula, Tensor& y, std::array<Tensor const*, sizeof...(I)> const& x, double cost,
                   std::index_sequence<I...>) {
  std::array const sources{x[I]->template data<T>().data()...};
  std::array const readers{BroadcastReader(x[I]->shape(), y.shape())...};
  T* const out = y.mutable_data<T>().data();
  bool const plain = (readers[I].contiguous() && ...);
  parallel_for(
      y.elements(), cost,
      [&](std::int64_t begin, std::int64_t end) {
        if (plain) return map_span(formula, out + begin, end - begin, sources[I] + begin...);
        alignas(64) std::array<std::array<T, map_block>, sizeof...(I)> scratch;
        for (std::int64_t at = begin; at < end; at += map_block) {
          std::int64_t const count = std::min(map_block, end - at);
          auto const operand = [&](std::size_t i) -> T const* {
            if (readers[i].contiguous()) return sources[i] + at;
            readers[i].gather(sources[i], at, count, scratch[i].data());
            return scratch[i].data();
          };
          map_span(formula, out + at, count, operand(I)...);
        }
      },
      map_block, Cut::fine);
}

/// A new tensor of `shape`: formula(x…), each x (all of one real dtype) broadcast to it.
template <class Formula, class... X>
Tensor map(Shape const& shape, Formula const& formula, double cost, X const&... x) {
  std::array<Tensor const*, sizeof...(X)> const operands{&x...};
  Tensor y(shape, operands[0]->dtype());
  auto const indices = std::make_index_sequence<sizeof...(X)>();
  if (y.dtype() == DType::float32) {
    map_broadcast<float>(formula, y, operands, cost, indices);
  } else {
    map_broadcast<double>(formula, y, operands, cost, indices);
  }
  return y;
}

}  // namespace heed::kernels
