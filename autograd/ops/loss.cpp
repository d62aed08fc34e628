// Losses.

#include <atomic>
#include <cmath>

#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/formula.hpp"

namespace heed {

namespace {

struct Smoothing {
  double amount;
  std::int64_t ignore;
  double count;  ///< what the sum is divided by
};

void check_targets(Tensor const& logits, Tensor const& targets, std::int64_t ignore) {
  require_real("cross_entropy", logits);
  Shape const rows = logits.rank() == 0 ? Shape{} : Shape(std::span(logits.shape().begin(), logits.rank() - 1));
  if (logits.rank() == 0 || targets.dtype() != DType::int64 || targets.shape() != rows) {
    throw Error(fmt::format("cross_entropy: logits {}, targets {} {}: targets are int64 [all axes of the logits but the last]",
                            to_string(logits.shape()), to_string(targets.dtype()), to_string(targets.shape())));
  }
  auto const values = targets.data<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != ignore && (values[i] < 0 || values[i] >= logits.size(-1))) {
      throw Error(fmt::format("cross_entropy: target {} at position {} is not in [0, {})", values[i], i, logits.size(-1)));
    }
  }
}

/// Per row: the loss (1 − ε)(lse − x_t) + ε (lse − mean x), and lse itself for the backward pass. Rows are summed in order.
template <class T>
double forward(Tensor const& logits, Tensor const& targets, Smoothing const& s, Tensor& lse) {
  std::int64_t const classes = logits.size(-1);
  T const* const x = logits.data<T>().data();
  std::int64_t const* const t = targets.data<std::int64_t>().data();
  T* const norms = lse.mutable_data<T>().data();
  std::vector<double> losses(static_cast<std::size_t>(targets.elements()), 0.0);
  parallel_for(targets.elements(), transcendental_cost * static_cast<double>(classes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      if (t[r] == s.ignore) continue;
      T const* const row = x + r * classes;
      T const m = kernels::max_row(row, classes);
      kernels::Lanes<T> const shift(m);
      T const total = kernels::sum_row<T>(
          classes, [&](auto v) { return xsimd::exp(v - shift); }, row);
      norms[r] = m + std::log(total);
      double loss = (1 - s.amount) * static_cast<double>(norms[r] - row[t[r]]);
      if (s.amount > 0) {
        T const sum = kernels::sum_row<T>(
            classes, [](auto v) { return v; }, row);
        loss += s.amount * (static_cast<double>(norms[r]) - static_cast<double>(sum) / static_cast<double>(classes));
      }
      losses[static_cast<std::size_t>(r)] = loss;
    }
  });
  double total = 0;
  for (double const loss : losses) total += loss;
  return s.count > 0 ? total / s.count : 0;
}

/// dx = (softmax x − target distribution) · dy/count.
template <class T>
void backward(Tensor const& logits, Tensor const& targets, Smoothing const& s, Tensor const& lse, double dy, Tensor& dlogits) {
  std::int64_t const classes = logits.size(-1);
  T const* const x = logits.data<T>().data();
  std::int64_t const* const t = targets.data<std::int64_t>().data();
  T const* const norms = lse.data<T>().data();
  T* const out = dlogits.mutable_data<T>().data();
  T const factor = s.count > 0 ? static_cast<T>(dy / s.count) : T(0);
  parallel_for(targets.elements(), transcendental_cost * static_cast<double>(classes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* const row = out + r * classes;
      if (t[r] == s.ignore) {
        std::fill_n(row, classes, T(0));
        continue;
      }
      kernels::Lanes<T> const norm(norms[r]), scale(factor), everywhere(static_cast<T>(s.amount / static_cast<double>(classes)));
      kernels::transform_row<T>(
          row, classes, [&](auto v) { return (xsimd::exp(v - norm) - everywhere) * scale; }, x + r * classes);
      row[t[r]] -= static_cast<T>(1 - s.amount) * factor;
    }
  });
}

/// The same as a composition of simple operations.
Tensor reference(Tensor const& logits, Tensor const& targets, Smoothing const& s) {
  if (s.count <= 0) return sum(logits * Tensor::scalar(0, logits.dtype()));
  std::int64_t const classes = logits.size(-1);
  // Ignored rows have a target distribution of zeros, and so no part in the sum.
  Tensor distribution = Tensor::zeros(logits.shape(), logits.dtype());
  auto const t = targets.data<std::int64_t>();
  kernels::with_real(logits.dtype(), [&](auto type) {
    using T = decltype(type);
    auto const rows = distribution.mutable_data<T>();
    for (std::size_t r = 0; r < t.size(); ++r) {
      if (t[r] == s.ignore) continue;
      auto const row = rows.subspan(r * static_cast<std::size_t>(classes), static_cast<std::size_t>(classes));
      std::ranges::fill(row, static_cast<T>(s.amount / static_cast<double>(classes)));
      row[static_cast<std::size_t>(t[r])] += static_cast<T>(1 - s.amount);
    }
  });
  return scale(sum(distribution * log_softmax(logits)), -1 / s.count);
}

}  // namespace

Tensor cross_entropy(Tensor const& logits, Tensor const& targets, double label_smoothing, std::int64_t ignore,
                     std::optional<double> count) {
  check_targets(logits, targets, ignore);
  if (!(label_smoothing >= 0 && label_smoothing < 1))
    throw Error(fmt::format("cross_entropy: label smoothing {} is not in [0, 1)", label_smoothing));
  auto const values = targets.data<std::int64_t>();
  auto const counted = static_cast<double>(values.size() - static_cast<std::size_t>(std::ranges::count(values, ignore)));
  Smoothing const s{label_smoothing, ignore, count.value_or(counted)};
  Tensor lse = Tensor::zeros(targets.shape(), logits.dtype());
  double loss = 0;
  kernels::with_real(logits.dtype(), [&](auto type) { loss = forward<decltype(type)>(logits, targets, s, lse); });
  return record_fused(
      "cross_entropy", {logits}, Tensor::scalar(loss, logits.dtype()), keep_inputs,
      [targets, s, lse](Step const& step) {
        Tensor dlogits(step.x().shape(), step.x().dtype());
        kernels::with_real(dlogits.dtype(),
                           [&](auto type) { backward<decltype(type)>(step.x(), targets, s, lse, step.dy.item(), dlogits); });
        return std::vector{dlogits};
      },
      [targets, s](std::vector<Tensor> const& in) { return reference(in[0], targets, s); });
}

namespace {

Sample cross_entropy_sample(double smoothing, std::vector<std::int64_t> values, double counted, SampleInput logits = {{2, 2, 6}}) {
  Shape const rows(std::span(logits.shape.begin(), logits.shape.rank() - 1));
  Tensor const targets = Tensor::of(values, rows);
  return {{logits},
          [=](std::vector<Tensor> const& x) { return cross_entropy(x[0], targets, smoothing); },
          [=](std::vector<Tensor> const& x) {
            return reference(x[0], targets, {smoothing, -1, counted});
          }};
}

}  // namespace

static Registered const cross_entropy_check{
    {"cross_entropy",
     "−Σ_c t_c log softmax(x)_c, mean over what counts",
     {cross_entropy_sample(0, {1, -1, 5, 0}, 3), cross_entropy_sample(0.1, {1, -1, 5, 0}, 3), cross_entropy_sample(0, {-1, -1, -1, -1}, 0),
      cross_entropy_sample(0, {3, 40}, 2, {{2, 41}, -30, 30}), cross_entropy_sample(0.1, {0}, 1, {{1, 1}})},
     {{[] {
         cross_entropy(Tensor::zeros({2, 3}, DType::float64), Tensor::of(std::vector<std::int64_t>{0, 3}, {2}));
       },
       "cross_entropy: target 3 at position 1 is not in [0, 3)"},
      {[] {
         cross_entropy(Tensor::zeros({2, 3}, DType::float64), Tensor::arange(3, DType::int64));
       },
       "cross_entropy: logits [2, 3], targets int64 [3]"}}}};

}  // namespace heed
