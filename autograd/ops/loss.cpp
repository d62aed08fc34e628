// Losses and noise.

#include "autograd/ops/loss.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "autograd/blas/products.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/operations.hpp"
#include "autograd/parallel.hpp"

// Cross entropy of a row of logits x against 1 − ε at the target plus ε/m at each of the m classes that can be chosen.
namespace heed::kernels {

inline constexpr double min_choice = -5e8;  ///< a class with a lower logit cannot be chosen (no_choice)

/// Σ f of the elements that can be chosen; `of` are the logits.
template <class T>
T sum_of_choices(T const* f, T const* of, Index n) {
  Lanes<T> const min_logit(static_cast<T>(min_choice)), none(T(0));
  return sum_row<T>(
      n, [&](auto v, auto logit) { return xsimd::select(logit > min_logit, v, none); }, f, of);
}

/// How many classes can be chosen.
template <class T>
double choices(T const* x, Index n) {
  return static_cast<double>(std::count_if(x, x + n, [](T logit) { return logit > static_cast<T>(min_choice); }));
}

template <class T>
struct RowLoss {
  double loss;
  T lse;  ///< log Σ eˣ, kept for the gradient
};

/// (1 − ε)(lse − x_t) + ε (lse − mean x).
template <class T>
RowLoss<T> cross_entropy_row(T const* x, Index n, Index target, double smoothing) {
  T const m = max_row(x, n);
  Lanes<T> const shift(m);
  T const total = sum_row<T>(
      n, [&](auto v) { return exponential(v - shift); }, x);
  T const lse = m + std::log(total);
  double loss = (1 - smoothing) * static_cast<double>(lse - x[target]);
  if (smoothing > 0) {
    loss += smoothing * (static_cast<double>(lse) - static_cast<double>(sum_of_choices(x, x, n)) / choices(x, n));
  }
  return {loss, lse};
}

/// out = (softmax x − target distribution) · factor; out may be x.
template <class T>
void cross_entropy_row_backward(T const* x, Index n, Index target, double smoothing, T lse, T factor, T* out) {
  Lanes<T> const log_sum_exp(lse), scale(factor), min_logit(static_cast<T>(min_choice)), none(T(0));
  Lanes<T> const share(smoothing > 0 ? static_cast<T>(smoothing / choices(x, n)) : T(0));
  transform_row<T>(
      out, n, [&](auto v) { return (exponential(v - log_sum_exp) - xsimd::select(v > min_logit, share, none)) * scale; }, x);
  out[target] -= static_cast<T>(1 - smoothing) * factor;
}

/// out = factor · softmax x ∘ (u − u·softmax x): the gradient's derivative along u. Returns u·(softmax x − target distribution).
template <class T>
double cross_entropy_row_second(T const* x, T const* u, Index n, Index target, double smoothing, T lse, T factor, T* out) {
  Lanes<T> const log_sum_exp(lse), scale(factor);
  T const mean = sum_row<T>(
      n, [&](auto v, auto along) { return exponential(v - log_sum_exp) * along; }, x, u);
  Lanes<T> const shift(mean);
  transform_row<T>(
      out, n, [&](auto v, auto along) { return exponential(v - log_sum_exp) * (along - shift) * scale; }, x, u);
  double of_target = (1 - smoothing) * static_cast<double>(u[target]);
  if (smoothing > 0) {
    of_target += smoothing * static_cast<double>(sum_of_choices(u, x, n)) / choices(x, n);
  }
  return static_cast<double>(mean) - of_target;
}

}  // namespace heed::kernels

namespace heed {

namespace {

struct LabelSmoothing {
  double amount;
  Index ignore;
  double count;  ///< divisor of the sum

  double mean(double sum) const { return count > 0 ? sum / count : 0; }
};

/// Throws Error naming the operation for wrong targets and settings. Divides by the number of targets that count, unless `count` is given.
LabelSmoothing checked(char const* operation, Shape const& logits, Tensor const& targets, double label_smoothing, Index ignore,
                       std::optional<double> count) {
  Shape const rows = logits.rank() == 0 ? Shape{} : Shape(std::span(logits.begin(), logits.rank() - 1));
  if (logits.rank() == 0 || targets.dtype() != DType::int64 || targets.shape() != rows)
    throw Error(fmt::format("{}: logits {}, targets {} {}: targets are int64 [all axes of the logits but the last]", operation,
                            to_string(logits), to_string(targets.dtype()), to_string(targets.shape())));
  auto const values = targets.data<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != ignore && (values[i] < 0 || values[i] >= logits[-1]))
      throw Error(fmt::format("{}: target {} at position {} is not in [0, {})", operation, values[i], i, logits[-1]));
  }
  if (!(label_smoothing >= 0 && label_smoothing < 1))
    throw Error(fmt::format("{}: label smoothing {} is not in [0, 1)", operation, label_smoothing));
  return {label_smoothing, ignore, count.value_or(static_cast<double>(std::ssize(values) - std::ranges::count(values, ignore)))};
}

/// Calls body(row, its target) for every row that counts, and ignored(row) for the others, on the pool.
template <class Body, class Ignored>
void each_row(Tensor const& targets, Index ignore, double cost, Body const& body, Ignored const& ignored) {
  Index const* const t = targets.data<std::int64_t>().data();
  parallel_each(
      targets.elements(), cost, [&](Index r) { t[r] == ignore ? ignored(r) : body(r, t[r]); }, Cut::whole);
}

/// Keeps the rows' log Σ eˣ for the backward pass. Rows are summed in order.
template <class T>
double forward(Tensor const& logits, Tensor const& targets, LabelSmoothing const& s, Tensor& lse) {
  Index const classes = logits.size(-1);
  T const* const x = logits.data<T>().data();
  T* const norms = lse.mutable_data<T>().data();
  std::vector<double> losses(static_cast<std::size_t>(targets.elements()), 0.0);
  auto const measure = [&](Index r, Index target) {
    auto const row = kernels::cross_entropy_row(x + r * classes, classes, target, s.amount);
    norms[r] = row.lse;
    at(losses, r) = row.loss;
  };
  each_row(targets, s.ignore, transcendental_cost * static_cast<double>(classes), measure, [](Index) {});
  return s.mean(std::accumulate(losses.begin(), losses.end(), 0.0));
}

/// dx = (softmax x − target distribution) · dy/count.
template <class T>
void backward(Tensor const& logits, Tensor const& targets, LabelSmoothing const& s, Tensor const& lse, double dy, Tensor& dlogits) {
  Index const classes = logits.size(-1);
  T const* const x = logits.data<T>().data();
  T const* const norms = lse.data<T>().data();
  T* const out = dlogits.mutable_data<T>().data();
  T const factor = static_cast<T>(s.mean(dy));
  each_row(
      targets, s.ignore, transcendental_cost * static_cast<double>(classes),
      [&](Index r, Index target) {
        kernels::cross_entropy_row_backward(x + r * classes, classes, target, s.amount, norms[r], factor, out + r * classes);
      },
      [&](Index r) { std::fill_n(out + r * classes, classes, T(0)); });
}

/// Σ u·dx by x and by dy.
template <class T>
double second(Tensor const& logits, Tensor const& targets, LabelSmoothing const& s, Tensor const& lse, double dy, Tensor const& u,
              Tensor& dlogits) {
  Index const classes = logits.size(-1);
  T const *const x = logits.data<T>().data(), *const along = u.data<T>().data(), *const norms = lse.data<T>().data();
  T* const out = dlogits.mutable_data<T>().data();
  T const factor = static_cast<T>(s.mean(dy));
  std::vector<double> of_rows(static_cast<std::size_t>(targets.elements()), 0.0);
  each_row(
      targets, s.ignore, 2 * transcendental_cost * static_cast<double>(classes),
      [&](Index r, Index target) {
        Index const row = r * classes;
        at(of_rows, r) = kernels::cross_entropy_row_second(x + row, along + row, classes, target, s.amount, norms[r], factor, out + row);
      },
      [&](Index r) { std::fill_n(out + r * classes, classes, T(0)); });
  return s.mean(std::accumulate(of_rows.begin(), of_rows.end(), 0.0));
}

/// The same as a composition of simple operations.
Tensor reference(Tensor const& logits, Tensor const& targets, LabelSmoothing const& s) {
  if (s.count <= 0) return sum(logits * Tensor::scalar(0, logits.dtype()));
  Index const classes = logits.size(-1);
  // Ignored rows have a target distribution of zeros, and so no part in the sum.
  Tensor distribution = Tensor::zeros(logits.shape(), logits.dtype());
  auto const t = targets.data<std::int64_t>();
  kernels::with_real(logits.dtype(), [&]<class T>(T) {
    auto const rows = distribution.mutable_data<T>();
    for (std::size_t r = 0; r < t.size(); ++r) {
      if (t[r] == s.ignore) continue;
      auto const row = rows.subspan(r * static_cast<std::size_t>(classes), static_cast<std::size_t>(classes));
      T const* const x = logits.data<T>().data() + r * row.size();
      T const share = s.amount > 0 ? static_cast<T>(s.amount / kernels::choices(x, classes)) : T(0);
      std::transform(x, x + classes, row.begin(), [&](T logit) { return logit > static_cast<T>(kernels::min_choice) ? share : T(0); });
      at(row, t[r]) += static_cast<T>(1 - s.amount);
    }
  });
  return scale(sum(distribution * log_softmax(logits)), -1 / s.count);
}

std::atomic<Index> max_logits_bytes = Index{16} << 20;
// Of a block. Every block reads the weight, and packs it for two products: of 50257 × 768, blocks of 128 rows take 20 % longer than blocks
// of 256, and of 64 rows 45 %. A block takes then a third of what the weight's gradient takes.
constexpr Index min_rows = 256;
constexpr Index whole_tiles = 16;  // blocks are multiples of this

Shape logits_shape(Tensor const& x, Tensor const& weight, Tensor const& bias) {
  require_same_real("linear_cross_entropy", x, weight);
  bool const fits = x.rank() > 0 && weight.rank() == 2 && weight.size(1) == x.size(-1);
  if (!fits || (bias.defined() && bias.shape() != Shape{weight.size(0)}))
    throw Error(fmt::format("linear_cross_entropy: x {}, weight {}, bias {}: weight is [classes, in], bias [classes]", to_string(x.shape()),
                            to_string(weight.shape()), bias.defined() ? to_string(bias.shape()) : "none"));
  Shape shape = x.shape();
  shape.set(-1, weight.size(0));
  return shape;
}

/// Rows of logits to their losses and, if wanted, in place to the gradients of these times `factor`.
template <class T>
void reduce_block(T* logits, Index classes, std::span<Index const> targets, double smoothing, T factor, bool gradients, double* losses) {
  auto const cost = (gradients ? 2 : 1) * transcendental_cost * static_cast<double>(classes);
  parallel_for(std::ssize(targets), cost, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      T* const row = logits + r * classes;
      Index const target = at(targets, r);
      auto const [loss, lse] = kernels::cross_entropy_row(row, classes, target, smoothing);
      losses[r] = loss;
      if (gradients) kernels::cross_entropy_row_backward(row, classes, target, smoothing, lse, factor, row);
    }
  });
}

/// By x [n, in], weight and bias; undefined where none is wanted.
struct HeadGradients {
  Tensor x, weight, bias;
};

/// The loss of rows that all count, with its gradients written into existing arrays. One block of logits is held at a time: once turned
/// into its gradient it is multiplied into the other gradients, so that no logits are computed twice.
template <class T>
double in_blocks(Tensor const& x, Tensor const& weight, Tensor const& bias, Tensor const& targets, LabelSmoothing const& s,
                 HeadGradients& d) {
  Index const rows = x.size(0), in = x.size(1), classes = weight.size(0);
  Index const at_once = logits_at_once(rows, classes, x.dtype());
  bool const gradients = d.x.defined() || d.weight.defined() || d.bias.defined();
  T const factor = static_cast<T>(s.mean(1));
  T const* const w = weight.data<T>().data();
  T const* const b = bias.defined() ? bias.data<T>().data() : nullptr;
  Tensor logits({at_once, classes}, x.dtype());
  T* const block = logits.mutable_data<T>().data();
  std::vector<double> losses(static_cast<std::size_t>(rows));
  for (Index first = 0; first < rows; first += at_once) {
    Index const count = std::min(at_once, rows - first);
    T const* const some = x.data<T>().data() + first * in;
    auto const wanted = targets.data<std::int64_t>().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    kernels::parallel_gemm<T>(count, classes, in, {some, in}, {w, in, true}, block, {.row = b});
    reduce_block(block, classes, wanted, s.amount, factor, gradients, losses.data() + first);
    if (d.x.defined()) kernels::parallel_gemm<T>(count, in, classes, {block, classes}, {w, in}, d.x.mutable_data<T>().data() + first * in);
    if (d.weight.defined()) {
      kernels::parallel_gemm<T>(classes, in, count, {block, classes, true}, {some, in}, d.weight.mutable_data<T>().data(),
                                {.in_place = first > 0});
    }
    if (d.bias.defined()) kernels::add_in_place(d.bias, sum(logits.rows(0, count), {0}));
  }
  return s.mean(std::accumulate(losses.begin(), losses.end(), 0.0));
}

/// The same for any rows: ignored ones contribute nothing and have gradient zero. `wanted`: for x, weight and bias.
double of_counted_rows(Tensor const& x, Tensor const& weight, Tensor const& bias, Tensor const& targets, LabelSmoothing const& s,
                       HeadGradients& d, std::array<bool, 3> wanted) {
  std::vector<Index> positions, known;
  auto const t = targets.data<std::int64_t>();
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (t[i] != s.ignore) positions.push_back(static_cast<Index>(i)), known.push_back(t[i]);
  }
  Index const all = targets.elements(), rows = std::ssize(known);
  Tensor const index = Tensor::of(positions, {rows});
  Tensor const flat = x.viewed({all, x.size(-1)});
  if (wanted[0]) d.x = Tensor({rows, x.size(-1)}, x.dtype());
  if (wanted[1]) d.weight = rows > 0 ? Tensor(weight.shape(), x.dtype()) : Tensor::zeros(weight.shape(), x.dtype());
  if (wanted[2]) d.bias = Tensor::zeros(bias.shape(), x.dtype());
  double const loss = kernels::with_real(x.dtype(), [&](auto type) {
    return in_blocks<decltype(type)>(rows == all ? flat : embedding(flat, index), weight, bias, Tensor::of(known, {rows}), s, d);
  });
  if (wanted[0]) d.x = (rows == all ? d.x : embedding_transposed(d.x, index, all)).viewed(x.shape());
  return loss;
}

}  // namespace

Tensor cross_entropy(Tensor const& logits, Tensor const& targets, double label_smoothing, Index ignore, std::optional<double> count) {
  require_real("cross_entropy", logits);
  LabelSmoothing const s = checked("cross_entropy", logits.shape(), targets, label_smoothing, ignore, count);
  Tensor lse = Tensor::zeros(targets.shape(), logits.dtype());
  double const loss = kernels::with_real(logits.dtype(), [&](auto type) { return forward<decltype(type)>(logits, targets, s, lse); });
  return record_fused(
      "cross_entropy", {logits}, Tensor::scalar(loss, logits.dtype()), keep_inputs,
      [targets, s, lse](BackwardContext const& step) {
        Tensor dlogits(step.x().shape(), step.x().dtype());
        kernels::with_real(dlogits.dtype(),
                           [&](auto type) { backward<decltype(type)>(step.x(), targets, s, lse, step.dy.item(), dlogits); });
        return std::vector{dlogits};
      },
      [targets, s](std::vector<Tensor> const& in) { return reference(in[0], targets, s); },
      [targets, s, lse](BackwardContext const& step, std::vector<Tensor> const& u) {
        Tensor dlogits(step.x().shape(), step.x().dtype());
        double const by_dy = kernels::with_real(
            dlogits.dtype(), [&](auto type) { return second<decltype(type)>(step.x(), targets, s, lse, step.dy.item(), u[0], dlogits); });
        return std::vector{dlogits, Tensor::scalar(by_dy, dlogits.dtype())};
      });
}

// ---------------------------------------------------------------- linear layer and cross entropy, in blocks

Index logits_bytes() { return max_logits_bytes.load(std::memory_order_relaxed); }
void set_logits_bytes(Index bytes) { max_logits_bytes = bytes; }

Index logits_at_once(Index rows, Index classes, DType dtype) {
  Index const row = classes * static_cast<Index>(bytes_of(dtype));
  if (rows * row <= max_logits_bytes) return rows;
  Index const block_rows = std::max(min_rows, max_logits_bytes / row / whole_tiles * whole_tiles);
  Index const blocks = (rows + block_rows - 1) / block_rows;
  Index const even = (rows + blocks - 1) / blocks;
  return std::min(rows, (even + whole_tiles - 1) / whole_tiles * whole_tiles);
}

Tensor linear_cross_entropy(Tensor const& x, Tensor const& weight, Tensor const& bias, Tensor const& targets, double label_smoothing,
                            Index ignore, std::optional<double> count) {
  Shape const logits = logits_shape(x, weight, bias);
  LabelSmoothing const s = checked("linear_cross_entropy", logits, targets, label_smoothing, ignore, count);
  auto const loss_of = [s](std::vector<Tensor> const& in, Tensor const& of) {
    return cross_entropy(linear(in[0], in[1], in[2]), of, s.amount, s.ignore, s.count);
  };
  auto const composed = [targets, loss_of](std::vector<Tensor> const& in) { return loss_of(in, targets); };
  if (logits.elements() * static_cast<Index>(bytes_of(x.dtype())) <= logits_bytes()) return composed({x, weight, bias});

  auto const wants = [](Tensor const& input) { return recording() && input.requires_grad(); };
  HeadGradients d;
  double const loss = of_counted_rows(x, weight, bias, targets, s, d, {wants(x), wants(weight), wants(bias)});
  return record_fused(
      "linear_cross_entropy", {x, weight, bias}, Tensor::scalar(loss, x.dtype()), keep_inputs,
      [gradients = std::vector{d.x, d.weight, d.bias}](BackwardContext const& step) {
        double const dy = step.dy.item();
        if (dy == 1) return gradients;
        return mapped(gradients, [&](Tensor const& gradient) { return gradient.defined() ? scale(gradient, dy) : gradient; });
      },
      composed,
      [targets, loss_of](BackwardContext const& step, std::vector<Tensor> const& u) {
        Index const rows = targets.elements();
        Tensor const flat = targets.viewed({rows});
        auto const some = [&](std::vector<Tensor> const& in, Index first) { return loss_of(in, flat.rows(first, in[0].size(0))); };
        return second_by_rows(some, step, u, logits_at_once(rows, step.x(1).size(0), step.x().dtype()));
      });
}

// ---------------------------------------------------------------- noise: a pure function of the stream and an element's index

Tensor dropout(Tensor const& x, double rate, Stream const& stream) {
  require_real("dropout", x);
  if (!(rate >= 0 && rate < 1)) throw Error(fmt::format("dropout: the rate {} is not in [0, 1)", rate));
  if (rate == 0) return x;
  Tensor y(x.shape(), x.dtype());
  kernels::with_arrays(x, y, [&](auto const* from, auto* out) {
    parallel_for(x.elements(), 3, [&](Index begin, Index end) {
      kernels::dropout_row(rate, stream, static_cast<std::uint64_t>(begin), from + begin, out + begin, end - begin);
    });
  });
  // Linear and its own transpose: the mask is drawn again, not kept.
  return record("dropout", {x}, std::move(y), keep_nothing,
                [rate, stream](BackwardContext const& s) { return std::vector{dropout(s.dy, rate, stream)}; });
}

}  // namespace heed
