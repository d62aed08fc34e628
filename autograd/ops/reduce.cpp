// Reductions over any axes.

#include "autograd/operations/reduce.hpp"

#include <algorithm>
#include <cmath>

#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/operations/elementwise.hpp"
#include "autograd/operations/shape.hpp"
#include "autograd/ops/formula.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

/// A reduction brought to the form [outer, extent, inner]: the middle axis goes.
struct Plan {
  Tensor x;
  std::int64_t outer = 1, extent = 1, inner = 1;
  Shape kept;    ///< the result's shape with extents of 1
  Shape result;  ///< as asked for
};

Plan plan(char const* operation, Tensor const& x, Axes const& axes, bool keep) {
  require_real(operation, x);
  std::vector<bool> reduced(x.rank(), axes.empty());
  for (std::int64_t const axis : axes) reduced[x.shape().position(axis)] = true;
  Plan p;
  std::vector<std::int64_t> order;
  std::vector<std::int64_t> last;
  int changes = 0;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    auto const axis = static_cast<std::int64_t>(i);
    (reduced[i] ? last : order).push_back(axis);
    p.kept.append(reduced[i] ? 1 : x.size(axis));
    if (keep || !reduced[i]) p.result.append(reduced[i] ? 1 : x.size(axis));
    changes += i > 0 && reduced[i] != reduced[i - 1];
    (reduced[i] ? p.extent : last.empty() ? p.outer : p.inner) *= x.size(axis);
  }
  bool const one_block = changes <= 1 || (changes == 2 && !reduced.front());
  if (one_block) {
    p.x = x.detach();
  } else {
    order.insert(order.end(), last.begin(), last.end());
    NoGrad const no_grad;
    p.x = permute(x, order);
    p.outer *= p.inner;
    p.inner = 1;
  }
  return p;
}

/// y[o, i] = the reduction of x[o, :, i]. `row` reduces a contiguous row; `merge(into, x)` joins two values, for strided columns.
template <class Row, class Merge>
Tensor reduce(Plan const& p, double start, Row const& row, Merge const& merge) {
  Tensor y(p.result, p.x.dtype());
  kernels::with_real(y.dtype(), [&](auto type) {
    using T = decltype(type);
    T const* const x = p.x.data<T>().data();
    T* const out = y.mutable_data<T>().data();
    double const cost = arithmetic_cost * static_cast<double>(p.extent);
    if (p.inner == 1) {
      parallel_for(p.outer, cost, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t o = begin; o < end; ++o) out[o] = row(x + o * p.extent, p.extent);
      });
      return;
    }
    constexpr std::int64_t width = 64;  // columns at once: a few registers
    std::int64_t const blocks = (p.inner + width - 1) / width;
    parallel_for(p.outer * blocks, cost * width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        std::int64_t const first = b % blocks * width;
        std::int64_t const count = std::min(width, p.inner - first);
        T const* const from = x + b / blocks * p.extent * p.inner + first;
        alignas(64) T total[width];
        std::fill_n(total, width, static_cast<T>(start));
        for (std::int64_t r = 0; r < p.extent; ++r) {
          for (std::int64_t c = 0; c < count; ++c) merge(total[c], from[r * p.inner + c]);
        }
        std::copy_n(total, count, out + b / blocks * p.inner + first);
      }
    });
  });
  return y;
}

Tensor summed(Plan const& p) {
  return reduce(
      p, 0,
      [](auto const* x, std::int64_t n) {
        return kernels::sum_row<std::remove_cvref_t<decltype(*x)>>(
            n, [](auto v) { return v; }, x);
      },
      [](auto& into, auto x) { into += x; });
}

std::int64_t reduced_elements(Tensor const& x, Axes const& axes) {
  if (axes.empty()) return x.elements();
  std::int64_t count = 1;
  for (std::int64_t const axis : axes) count *= x.size(axis);
  return count;
}

TensorFunction over(Tensor (*f)(Tensor const&, Axes const&, bool), Axes axes, bool keep) {
  return [f, axes = std::move(axes), keep](std::vector<Tensor> const& x) { return f(x[0], axes, keep); };
}

/// The samples that every reduction shares, in [−reach, reach): wide where ties are corners, so that none is near.
std::vector<Sample> reduction_samples(Tensor (*f)(Tensor const&, Axes const&, bool), double reach = 2) {
  auto const of = [&](Shape const& shape, Axes const& axes, bool keep) { return Sample{{{shape, -reach, reach}}, over(f, axes, keep)}; };
  return {of({3, 4, 5}, {}, false),    of({3, 4, 5}, {1}, false),    of({3, 4, 5}, {-1}, true),
          of({3, 4, 5}, {0, 2}, true), of({3, 4, 5}, {0, 1}, false), of({}, {}, false),
          of({2, 1, 3}, {1}, false),   of({2, 70}, {0}, false),      of({1, 67}, {1}, true)};
}

std::vector<ErrorCase> reduction_errors(Tensor (*f)(Tensor const&, Axes const&, bool)) {
  return {{[f] {
             f(Tensor::zeros({2, 3}, DType::float64), {2}, false);
           },
           "axis 2 is out of range for the shape [2, 3]"},
          {[f] { f(Tensor::arange(3, DType::int64), {}, false); }, "wants real numbers, not int64"}};
}

}  // namespace

Tensor sum(Tensor const& x, Axes const& axes, bool keep) {
  Plan const p = plan("sum", x, axes, keep);
  return record("sum", {x}, summed(p), keep_nothing, [kept = p.kept](Step const& s) {
    return std::vector{expand(reshape(s.dy, {kept.begin(), kept.end()}), s.x().shape())};
  });
}
static Registered const sum_check{{"sum", "Σ x", reduction_samples(sum), reduction_errors(sum)}};

Tensor sum_of_squares(Tensor const& x, Axes const& axes, bool keep) {
  Plan const p = plan("sum_of_squares", x, axes, keep);
  Tensor y = reduce(
      p, 0,
      [](auto const* row, std::int64_t n) {
        return kernels::sum_row<std::remove_cvref_t<decltype(*row)>>(
            n, [](auto v) { return v * v; }, row);
      },
      [](auto& into, auto v) { into += v * v; });
  return record("sum_of_squares", {x}, std::move(y), keep_inputs, [kept = p.kept](Step const& s) {
    return std::vector{reshape(scale(s.dy, 2), {kept.begin(), kept.end()}) * s.x()};
  });
}
static Registered const sum_of_squares_check{
    {"sum_of_squares", "Σ x²", reduction_samples(sum_of_squares), reduction_errors(sum_of_squares)}};

Tensor sum_to(Tensor const& x, Shape const& shape) {
  if (x.shape() == shape) return x;
  Axes axes;
  auto const missing = static_cast<std::int64_t>(x.rank()) - static_cast<std::int64_t>(shape.rank());
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(x.rank()); ++axis) {
    bool const repeated = axis < missing || (shape[axis - missing] == 1 && x.size(axis) != 1);
    if (!repeated && shape[axis - missing] != x.size(axis)) {
      throw Error(fmt::format("sum_to: {} does not come from {} by broadcasting", to_string(x.shape()), to_string(shape)));
    }
    if (repeated) axes.push_back(axis);
  }
  return reshape(axes.empty() ? x : sum(x, axes), {shape.begin(), shape.end()});
}
static Registered const sum_to_check{{"sum_to",
                                      "the sum over what broadcasting repeated",
                                      {{{{{3, 4, 5}}},
                                        [](std::vector<Tensor> const& x) {
                                          return sum_to(x[0], {4, 1});
                                        }},
                                       {{{{3, 4}}}, [](std::vector<Tensor> const& x) { return sum_to(x[0], {}); }}},
                                      {{[] {
                                          sum_to(Tensor::zeros({2, 3}, DType::float64), {4});
                                        },
                                        "sum_to: [2, 3] does not come from [4] by broadcasting"}}}};

Tensor mean(Tensor const& x, Axes const& axes, bool keep) {
  return scale(sum(x, axes, keep), 1 / static_cast<double>(reduced_elements(x, axes)));
}
static Registered const mean_check{{"mean", "Σ x / n", reduction_samples(mean), reduction_errors(mean)}};

Tensor variance(Tensor const& x, Axes const& axes, bool keep, std::int64_t correction) {
  Tensor const deviation = x - mean(x, axes, true);
  return scale(sum_of_squares(deviation, axes, keep), 1 / static_cast<double>(reduced_elements(x, axes) - correction));
}
static Registered const variance_check{
    {"variance", "Σ(x − mean)²/(n − correction)",
     reduction_samples([](Tensor const& x, Axes const& axes, bool keep) { return variance(x, axes, keep); }),
     reduction_errors([](Tensor const& x, Axes const& axes, bool keep) { return variance(x, axes, keep); })}};

Tensor max(Tensor const& x, Axes const& axes, bool keep) {
  Plan const p = plan("max", x, axes, keep);
  if (p.extent == 0) throw Error(fmt::format("max: over no elements at all, in {}", to_string(x.shape())));
  Tensor y = reduce(
      p, -std::numeric_limits<double>::infinity(), [](auto const* row, std::int64_t n) { return kernels::max_row(row, n); },
      [](auto& into, auto v) { into = v > into || v != v ? v : into; });
  return record("max", {x}, std::move(y), Keep{~0U, true}, [kept = p.kept](Step const& s) {
    std::vector<std::int64_t> const extents(kept.begin(), kept.end());
    Tensor const share = equal(s.x().detach(), reshape(s.y.detach(), extents));
    return std::vector{share * (reshape(s.dy, extents) / sum_to(share, kept))};
  });
}
static Registered const max_check{{"max", "max x", reduction_samples(max, 50), reduction_errors(max)}};

Tensor min(Tensor const& x, Axes const& axes, bool keep) { return negate(max(negate(x), axes, keep)); }
static Registered const min_check{{"min", "min x", reduction_samples(min, 50)}};

namespace {

/// logsumexp() of contiguous rows, without a node.
Tensor logsumexp_of_rows(Plan const& p) {
  return reduce(
      p, 0,
      [](auto const* x, std::int64_t n) {
        using T = std::remove_cvref_t<decltype(*x)>;
        T const most = std::numeric_limits<T>::max(), largest = kernels::max_row(x, n);
        T const m = largest > most ? most : largest < -most ? -most : largest;  // NaN stays
        kernels::Lanes<T> const shift(m);
        return m + std::log(kernels::sum_row<T>(
                       n, [&](auto v) { return kernels::exponential(v - shift); }, x));
      },
      [](auto&, auto) {});
}

}  // namespace

Tensor logsumexp(Tensor const& x, Axes const& axes, bool keep) {
  if (!recording() || !x.requires_grad()) {
    Plan const p = plan("logsumexp", x, axes, keep);
    if (p.inner == 1 && p.extent > 0) return logsumexp_of_rows(p);
  }
  // The shift is a constant; clamped, so that a row of −∞ gives −∞ and not ∞ − ∞.
  double const largest = x.dtype() == DType::float32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  Tensor const m = clamp(max(x.detach(), axes, true), -largest, largest);
  Tensor const result = log(sum(exp(x - m), axes, true)) + m;
  Shape const shape = keep ? result.shape() : plan("logsumexp", x, axes, false).result;
  return reshape(result, {shape.begin(), shape.end()});
}
static Registered const logsumexp_check{{"logsumexp", "log Σ eˣ", reduction_samples(logsumexp), reduction_errors(logsumexp)}};

Tensor cumsum(Tensor const& x, std::int64_t axis, bool reverse) {
  Plan const p = plan("cumsum", x, {axis}, true);
  Tensor y(x.shape(), x.dtype());
  kernels::with_real(y.dtype(), [&](auto type) {
    using T = decltype(type);
    T const* const from = p.x.data<T>().data();
    T* const out = y.mutable_data<T>().data();
    parallel_for(p.outer, arithmetic_cost * static_cast<double>(p.extent * p.inner), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) {
        for (std::int64_t k = 0; k < p.extent; ++k) {
          std::int64_t const row = (o * p.extent + (reverse ? p.extent - 1 - k : k)) * p.inner;
          std::int64_t const before = reverse ? row + p.inner : row - p.inner;
          for (std::int64_t i = 0; i < p.inner; ++i) out[row + i] = from[row + i] + (k == 0 ? T(0) : out[before + i]);
        }
      }
    });
  });
  return record("cumsum", {x}, std::move(y), keep_nothing,
                [axis, reverse](Step const& s) { return std::vector{cumsum(s.dy, axis, !reverse)}; });
}
static Registered const cumsum_check{{"cumsum",
                                      "Σ_{j ≤ i} x_j",
                                      {{{{{3, 4, 5}}}, [](std::vector<Tensor> const& x) { return cumsum(x[0], 1); }},
                                       {{{{3, 4}}}, [](std::vector<Tensor> const& x) { return cumsum(x[0], -1, true); }}},
                                      {{[] { cumsum(Tensor::zeros({2}, DType::float64), 1); }, "axis 1 is out of range"}}}};

Tensor argmax(Tensor const& x, std::int64_t axis) {
  Plan const p = plan("argmax", x, {axis}, false);
  if (p.extent == 0) throw Error(fmt::format("argmax: over no elements at all, in {}", to_string(x.shape())));
  Tensor y(p.result, DType::int64);
  kernels::with_real(x.dtype(), [&](auto type) {
    using T = decltype(type);
    T const* const from = p.x.data<T>().data();
    auto const out = y.mutable_data<std::int64_t>();
    for (std::int64_t o = 0; o < p.outer; ++o) {
      for (std::int64_t i = 0; i < p.inner; ++i) {
        std::int64_t best = 0;
        T const* const column = from + o * p.extent * p.inner + i;
        for (std::int64_t k = 1; k < p.extent; ++k) best = column[k * p.inner] > column[best * p.inner] ? k : best;
        out[static_cast<std::size_t>(o * p.inner + i)] = best;
      }
    }
  });
  return y;
}
static Registered const argmax_check{{"argmax",
                                      "the position of max x",
                                      {{{{{3, 4}}}, [](std::vector<Tensor> const& x) { return argmax(x[0], 1); }}},
                                      {{[] {
                                          argmax(Tensor::zeros({2, 0}, DType::float64), 1);
                                        },
                                        "argmax: over no elements at all, in [2, 0]"}},
                                      false}};

}  // namespace heed
