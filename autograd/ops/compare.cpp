// Comparisons and selections. Comparisons have no derivative; selections do.

#include <atomic>
#include <cmath>

#include "autograd/graph_memory.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/formula.hpp"
#include "autograd/parallel.hpp"

namespace heed {

Tensor greater(Tensor const& a, Tensor const& b) {
  return elementwise("greater", a, b, [](auto x, auto y) { return where(x > y, like(1, x), like(0, x)); });
}
Tensor greater_equal(Tensor const& a, Tensor const& b) {
  return elementwise("greater_equal", a, b, [](auto x, auto y) { return where(x >= y, like(1, x), like(0, x)); });
}
Tensor less(Tensor const& a, Tensor const& b) {
  return elementwise("less", a, b, [](auto x, auto y) { return where(x < y, like(1, x), like(0, x)); });
}
Tensor less_equal(Tensor const& a, Tensor const& b) {
  return elementwise("less_equal", a, b, [](auto x, auto y) { return where(x <= y, like(1, x), like(0, x)); });
}
Tensor equal(Tensor const& a, Tensor const& b) {
  return elementwise("equal", a, b, [](auto x, auto y) { return where(x == y, like(1, x), like(0, x)); });
}
Tensor not_equal(Tensor const& a, Tensor const& b) {
  // Written with ==, so that a NaN differs from everything: xsimd's != says no where there is AVX.
  return elementwise("not_equal", a, b, [](auto x, auto y) { return where(x == y, like(0, x), like(1, x)); });
}
static Declared<OperationCheck> const greater_check{binary_check("greater", "a > b", greater, {}, {}, false)};
static Declared<OperationCheck> const greater_equal_check{binary_check("greater_equal", "a ≥ b", greater_equal, {}, {}, false)};
static Declared<OperationCheck> const less_check{binary_check("less", "a < b", less, {}, {}, false)};
static Declared<OperationCheck> const less_equal_check{binary_check("less_equal", "a ≤ b", less_equal, {}, {}, false)};
static Declared<OperationCheck> const equal_check{binary_check("equal", "a = b", equal, {}, {}, false)};
static Declared<OperationCheck> const not_equal_check{binary_check("not_equal", "a ≠ b", not_equal, {}, {}, false)};

namespace {

/// The gradient of a selection between a and b: dy where a is selected, half of it at a tie. Selected instead of multiplied, because 0 · ∞
/// is NaN.
auto const chosen = [](auto dy, auto taken, auto left) {
  return where(taken > left, dy, where(taken >= left, like(0.5, dy) * dy, like(0, dy)));
};

}  // namespace

Tensor maximum(Tensor const& a, Tensor const& b) {
  return elementwise(
      "maximum", a, b, [](auto x, auto y) { return where(x > y, x, where(x == x, y, x)); },  // a NaN on either side stays one
      [](auto dy, auto x, auto y) { return chosen(dy, x, y); }, [](auto dy, auto x, auto y) { return chosen(dy, y, x); });
}
static Declared<OperationCheck> const maximum_check{binary_check("maximum", "max(a, b)", maximum, {{}, -2, 0.4}, {{}, 0.5, 2})};
static Declared<OperationCheck> const maximum_left_check{binary_check("maximum", "max(a, b)", maximum, {{}, 0.5, 2}, {{}, -2, 0.4})};

Tensor minimum(Tensor const& a, Tensor const& b) {
  return elementwise(
      "minimum", a, b, [](auto x, auto y) { return where(x < y, x, where(x == x, y, x)); },  //
      [](auto dy, auto x, auto y) { return chosen(dy, y, x); }, [](auto dy, auto x, auto y) { return chosen(dy, x, y); });
}
static Declared<OperationCheck> const minimum_check{binary_check("minimum", "min(a, b)", minimum, {{}, -2, 0.4}, {{}, 0.5, 2})};

Tensor abs(Tensor const& x) {
  return elementwise<Uses::input>(
      "abs", x, [](auto v) { return abs(v); }, [](auto dy, auto v) { return where(v > 0, dy, where(v < 0, -dy, like(0, dy))); },
      arithmetic_cost);
}
static Declared<OperationCheck> const abs_check{unary_check("abs", "|x|", abs, 0.1, 2)};
static Declared<OperationCheck> const abs_negative_check{unary_check("abs (negative)", "|x|", abs, -2, -0.1)};

Tensor clamp(Tensor const& x, double low, double high) {
  if (!(low <= high)) throw Error(fmt::format("clamp: the lower end {} is above the upper end {}", low, high));
  return elementwise<Uses::input>(
      "clamp", x, [low, high](auto v) { return where(v < like(low, v), like(low, v), where(v > like(high, v), like(high, v), v)); },
      [low, high](auto dy, auto v) { return where(v >= like(low, v), where(v <= like(high, v), dy, like(0, dy)), like(0, dy)); },
      arithmetic_cost);
}
static Declared<OperationCheck> const clamp_check{unary_check(
    "clamp", "min(max(x, low), high)", [](Tensor const& x) { return clamp(x, -3, 0.9); }, -2, 0.8)};

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
static Declared<OperationCheck> const where_check{
    {"where",
     "a if condition else b",
     {{{{{3, 1, 4}}, {{2, 4}}},
       [](std::vector<Tensor> const& x) {
         return where(Tensor::of({1, 0, 0, 1}, {4}, x[0].dtype()), x[0], x[1]);
       }}},
     {{[] { where(Tensor::zeros({2}, DType::float64), Tensor::zeros({3}, DType::float64), Tensor::zeros({3}, DType::float64)); },
       "where: shapes do not broadcast: [2] and [3]"}}}};

Tensor masked_fill(Tensor const& x, Tensor const& mask, double value) { return where(mask, like(value, x), x); }
static Declared<OperationCheck> const masked_fill_check{
    {"masked_fill", "value where mask, else x", {{{{{3, 4}}}, [](std::vector<Tensor> const& x) {
                                                    return masked_fill(x[0], Tensor::of({1, 0, 0, 1}, {4}, x[0].dtype()), -7);
                                                  }}}}};

Tensor stop_gradient(Tensor const& x) { return x.detach(); }
static Declared<OperationCheck> const stop_gradient_check{
    {"stop_gradient", "x, a constant", {{{{{3, 4}}}, [](std::vector<Tensor> const& x) { return stop_gradient(x[0]); }}}, {}, false}};

namespace {

bool holds_nan(Tensor const& x) {
  constexpr std::int64_t piece = 1 << 15;
  std::atomic<bool> found = false;
  kernels::with_real(x.dtype(), [&](auto type) {
    using T = decltype(type);
    T const* const elements = x.data<T>().data();
    parallel_for(
        x.elements(), arithmetic_cost,
        [&](std::int64_t begin, std::int64_t end) {
          if (std::isnan(kernels::max_row(elements + begin, end - begin))) found = true;
        },
        piece);
  });
  return found;
}

}  // namespace

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
