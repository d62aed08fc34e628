#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "autograd/kernels/simd/xsimd.hpp"
#include "autograd/tensor.hpp"
#include "autograd/xtensor.hpp"

/// Applies a formula element by element, as an xtensor expression. Only its loop over contiguous elements is compiled per formula.
namespace heed::kernels {

/// out[i] = formula(x[0][i], x[1][i], …) for n elements. `out` may be one of x.
template <class T>
using FormulaLoop = void (*)(void const* formula, T* out, T const* const* x, Index n);

/// A formula's loop in both precisions, with the formula's type erased.
struct FormulaLoops {
  void const* formula;
  FormulaLoop<float> float32;
  FormulaLoop<double> float64;
};

namespace detail {

template <class T, std::size_t>
struct Same {
  using type = T;
};

/// A formula over batches as a function for xt::xfunction: batch by batch through simd_apply() and, for the remaining elements, as lanes of
/// a batch, so that both give the same bits. (xtensor takes the address of simd_apply<Batch>, which must be one function: hence the index.)
template <class Formula, class MoreOperands>
struct FormulaFunction;
template <class Formula, std::size_t... I>
struct FormulaFunction<Formula, std::index_sequence<I...>> {
  Formula const* formula;

  template <class T>
  T operator()(T const& x, typename Same<T, I>::type const&... more) const {
    using Batch = xsimd::batch<T>;
    std::array<T, Batch::size> lanes;
    (*formula)(Batch(x), Batch(more)...).store_unaligned(lanes.data());
    return lanes[0];
  }
  template <class Batch>
  Batch simd_apply(Batch const& x, typename Same<Batch, I>::type const&... more) const {
    return (*formula)(x, more...);
  }
};

/// Flattened, so that constants stay in registers: saves a quarter of the exponential's time.
template <class T, class Formula, class... X>
[[gnu::flatten]] void formula_loop(Formula const& formula, T* out, Index n, X const*... x) {
  using Function = FormulaFunction<Formula, std::make_index_sequence<sizeof...(X) - 1>>;
  auto const elements = [n](auto* at) {
    auto const count = static_cast<std::size_t>(n);
    return xt::adapt(at, count, xt::no_ownership(), std::array{count});
  };
  auto y = elements(out);
  // What xt::noalias(y) = … comes to for contiguous elements, which would compile xtensor's other three loops for every formula besides.
  xt::linear_assigner<true>::run(y, xt::xfunction<Function, decltype(elements(x))...>(Function{&formula}, elements(x)...));
}

template <class T, class Formula, std::size_t... I>
FormulaLoop<T> loop_of(std::index_sequence<I...>) {
  return
      [](void const* formula, T* out, T const* const* x, Index n) { formula_loop(*static_cast<Formula const*>(formula), out, n, x[I]...); };
}

}  // namespace detail

/// The loops of a formula of `operands` values; `formula` must outlive them.
template <std::size_t operands, class Formula>
FormulaLoops loops(Formula const& formula) {
  auto const indices = std::make_index_sequence<operands>();
  return {&formula, detail::loop_of<float, Formula>(indices), detail::loop_of<double, Formula>(indices)};
}

/// The largest number of a formula's operands.
inline constexpr std::size_t max_operands = 4;

/// y = formula(x…) with each x (of y's real dtype) broadcast to y's shape; y may be one of x. `cost`: rough nanoseconds per element.
void map_into(Tensor& y, FormulaLoops const& formula, double cost, std::span<Tensor const* const> x);

/// formula(x…) as a new tensor of `shape`, each x (all of one real dtype) broadcast to it.
template <class Formula, class... X>
Tensor map(Shape const& shape, Formula const& formula, double cost, X const&... x) {
  static_assert(sizeof...(X) <= max_operands);
  std::array<Tensor const*, sizeof...(X)> const operands{&x...};
  Tensor y(shape, operands[0]->dtype());
  map_into(y, loops<sizeof...(X)>(formula), cost, operands);
  return y;
}

}  // namespace heed::kernels
