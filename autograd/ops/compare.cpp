// Comparisons and selections. Comparisons have no derivative; selections do.

#include <atomic>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "autograd/elementwise.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

/// 1 where it holds, else 0.
template <class Holds>
Tensor compared(char const* operation, Tensor const& a, Tensor const& b, Holds const& holds) {
  return elementwise(operation, a, b, [holds](auto x, auto y) { return where(holds(x, y), like(1, x), like(0, x)); });
}

}  // namespace

Tensor greater(Tensor const& a, Tensor const& b) { return compared("greater", a, b, std::greater<>()); }
Tensor greater_equal(Tensor const& a, Tensor const& b) { return compared("greater_equal", a, b, std::greater_equal<>()); }
Tensor less(Tensor const& a, Tensor const& b) { return compared("less", a, b, std::less<>()); }
Tensor less_equal(Tensor const& a, Tensor const& b) { return compared("less_equal", a, b, std::less_equal<>()); }
Tensor equal(Tensor const& a, Tensor const& b) { return compared("equal", a, b, std::equal_to<>()); }
Tensor not_equal(Tensor const& a, Tensor const& b) {
  // Written with ==, so that a NaN differs from everything: xsimd's != says no where there is AVX.
  return elementwise("not_equal", a, b, [](auto x, auto y) { return where(x == y, like(0, x), like(1, x)); });
}

namespace {

/// The gradient of a selection: dy where a is selected, half of it at a tie. Selected instead of multiplied, because 0 · ∞ is NaN.
auto const chosen = [](auto dy, auto taken, auto left) {
  return where(taken > left, dy, where(taken >= left, like(0.5, dy) * dy, like(0, dy)));
};

bool holds_nan(Tensor const& x) {
  constexpr Index piece = 1 << 15;
  std::atomic<bool> found = false;
  kernels::with_real(x.dtype(), [&]<class T>(T) {
    T const* const elements = x.data<T>().data();
    parallel_for(
        x.elements(), arithmetic_cost,
        [&](Index begin, Index end) {
          if (std::isnan(kernels::max_row(elements + begin, end - begin))) found = true;
        },
        piece);
  });
  return found;
}

}  // namespace

Tensor maximum(Tensor const& a, Tensor const& b) {
  return elementwise(
      "maximum", a, b, [](auto x, auto y) { return where(x > y, x, where(x == x, y, x)); },  // a NaN on either side stays one
      [](auto dy, auto x, auto y) { return chosen(dy, x, y); }, [](auto dy, auto x, auto y) { return chosen(dy, y, x); });
}

Tensor minimum(Tensor const& a, Tensor const& b) {
  return elementwise(
      "minimum", a, b, [](auto x, auto y) { return where(x < y, x, where(x == x, y, x)); },  //
      [](auto dy, auto x, auto y) { return chosen(dy, y, x); }, [](auto dy, auto x, auto y) { return chosen(dy, x, y); });
}

Tensor abs(Tensor const& x) {
  return elementwise<Uses::input>(
      "abs", x, [](auto v) { return abs(v); }, [](auto dy, auto v) { return where(v > 0, dy, where(v < 0, -dy, like(0, dy))); },
      arithmetic_cost);
}

Tensor clamp(Tensor const& x, double low, double high) {
  if (!(low <= high)) throw Error(fmt::format("clamp: the lower end {} is above the upper end {}", low, high));
  return elementwise<Uses::input>(
      "clamp", x, [low, high](auto v) { return where(v < like(low, v), like(low, v), where(v > like(high, v), like(high, v), v)); },
      [low, high](auto dy, auto v) { return where(v >= like(low, v), where(v <= like(high, v), dy, like(0, dy)), like(0, dy)); },
      arithmetic_cost);
}

Tensor where(Tensor const& condition, Tensor const& a, Tensor const& b) {
  require_same_real("where", condition, a);
  require_same_real("where", a, b);
  Shape const shape = broadcast(condition.shape(), broadcast(a.shape(), b.shape(), "where"), "where");
  Tensor value = kernels::map(
      shape, [](auto c, auto x, auto y) { return where(c == 0, y, x); }, arithmetic_cost, condition, a, b);
  return record("where", {condition, a, b}, std::move(value), Keep{.inputs = {true}}, [](BackwardContext const& s) {
    Tensor const condition_only = s.x(0).detach();
    Tensor const zero = like(0, s.dy);
    return std::vector{Tensor(), s.wants(1) ? where(condition_only, s.dy, zero) : Tensor(),
                       s.wants(2) ? where(condition_only, zero, s.dy) : Tensor()};
  });
}

Tensor masked_fill(Tensor const& x, Tensor const& mask, double value) { return where(mask, like(value, x), x); }

Tensor stop_gradient(Tensor const& x) { return x.detach(); }

Tensor zero_where_unused(Tensor const& dy, Tensor const& derivative) {
  if (!holds_nan(derivative)) return derivative;
  Tensor const d = derivative.detach(), zero = like(0, dy);
  return where(maximum(equal(d, d), not_equal(dy.detach(), zero)), derivative, zero);
}

Tensor slope_times(Tensor const& dy, Tensor const& slope) {
  Tensor const product = dy * slope;
  return zero_where_unused(slope, zero_where_unused(dy, product));
}

}  // namespace heed
