#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "autograd/kernels/simd/xsimd.hpp"
#include "autograd/tensor.hpp"

/// A formula over values, applied element by element. Only the loop over whole cache lines is compiled once a formula; broadcasting,
/// threads and what is left at an array's end are the same code for all of them.
namespace heed::kernels {

/// Elements that a formula's loop is given are a multiple of this: one cache line, whole batches on every instruction set.
template <class T>
inline constexpr std::int64_t line = 64 / sizeof(T);

/// out[i] = formula(x[0][i], x[1][i], …) for n elements, n a multiple of line<T>. `out` may be one of x.
template <class T>
using FormulaLoop = void (*)(void const* formula, T* out, T const* const* x, std::int64_t n);

/// A formula of any type, and its loop in both precisions.
struct FormulaLoops {
  void const* formula;
  FormulaLoop<float> float32;
  FormulaLoop<double> float64;
};

namespace detail {

/// Flat: a formula's constants stay in registers, a quarter of the exponential's time.
template <class T, class Formula, class... X>
[[gnu::flatten]] void formula_loop(Formula const& formula, T* out, std::int64_t n, X const*... x) {
  using Batch = xsimd::batch<T>;
  for (std::int64_t i = 0; i < n; i += static_cast<std::int64_t>(Batch::size))
    formula(Batch::load_unaligned(x + i)...).store_unaligned(out + i);
}

template <class T, class Formula, std::size_t... I>
FormulaLoop<T> loop_of(std::index_sequence<I...>) {
  return [](void const* formula, T* out, T const* const* x, std::int64_t n) {
    formula_loop(*static_cast<Formula const*>(formula), out, n, x[I]...);
  };
}

}  // namespace detail

/// The loops of a formula of `operands` values; `formula` must outlive them.
template <std::size_t operands, class Formula>
FormulaLoops loops(Formula const& formula) {
  auto const indices = std::make_index_sequence<operands>();
  return {&formula, detail::loop_of<float, Formula>(indices), detail::loop_of<double, Formula>(indices)};
}

/// How many values a formula may have.
inline constexpr std::size_t most_operands = 4;

/// y = formula(x…) with each x (of y's real dtype) broadcast to y's shape; y may be one of x. `cost`: nanoseconds an element, roughly.
void map_into(Tensor& y, FormulaLoops const& formula, double cost, std::span<Tensor const* const> x);

/// A new tensor of `shape`: formula(x…), each x (all of one real dtype) broadcast to it.
template <class Formula, class... X>
Tensor map(Shape const& shape, Formula const& formula, double cost, X const&... x) {
  static_assert(sizeof...(X) <= most_operands);
  std::array<Tensor const*, sizeof...(X)> const operands{&x...};
  Tensor y(shape, operands[0]->dtype());
  map_into(y, loops<sizeof...(X)>(formula), cost, operands);
  return y;
}

}  // namespace heed::kernels
