#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "autograd/attention/attention.hpp"
#include "autograd/attention/pairs.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

/// An align of the attention kernels, from a struct with the static functions weights(row, again), gradients(row) and composed(…) and the
/// constant wants_scores, as RowAlign describes them, for rows of either precision.
template <class Rows>
std::shared_ptr<RowAlign const> row_align() {
  struct Typed : RowAlign {
    void weights(kernels::AlignRow<float> const& row, bool again) const override { Rows::weights(row, again); }
    void weights(kernels::AlignRow<double> const& row, bool again) const override { Rows::weights(row, again); }
    void gradients(kernels::AlignRow<float> const& row) const override { Rows::gradients(row); }
    void gradients(kernels::AlignRow<double> const& row) const override { Rows::gradients(row); }
    bool wants_scores() const override { return Rows::wants_scores; }
    Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const& seen, Tensor const& parameter) const override {
      return Rows::composed(scores, visible, seen, parameter);
    }
  };
  return std::make_shared<Typed>();
}

/// An align of whole rows, with an optional parameter per head.
class AlignByRows : public Align {
 public:
  AlignByRows(std::shared_ptr<RowAlign const> rows, Tensor parameter) : rows_(std::move(rows)), parameter_(std::move(parameter)) {}
  void fill(AttentionForm& form, AttentionInputs& in, Tensor const&) const override { form.align = rows_, in.align = parameter_; }

 private:
  std::shared_ptr<RowAlign const> rows_;
  Tensor parameter_;
};

/// The factory of an align, with one parameter per head if it has a name; `start`: its initial value.
template <class Rows>
auto align_by_rows(std::string const& name = "", double (*start)(HeadShape const&) = nullptr) {
  return [=](Scope const& scope, AttentionSettings const&, HeadShape const& shape) {
    auto const parameter = [&] { return scope.parameter(name, {shape.heads}, Initial::constant(start(shape)), WeightDecay::off); };
    return std::make_unique<AlignByRows>(row_align<Rows>(), name.empty() ? Tensor() : parameter());
  };
}

/// For the z above a threshold τ: their number, Σ (z − τ) and Σ (z − τ)².
template <class T>
struct SumsAbove {
  T count, sum, squares;
};

/// For z_j = scale · (x_j − max_score).
template <class T>
SumsAbove<T> sums_above(T const* x, Index n, T max_score, T scale, T threshold) {
  using V = kernels::Lanes<T>;
  V const top(max_score), factor(scale), tau(threshold), zero(T(0)), one(T(1));
  V count = zero, sum = zero, squares = zero;
  kernels::each_batch<T>(n, [&](Index j, auto const& batch) {
    Index const rest = std::min(n - j, kernels::lanes<T>);
    V y = kernels::greater(zero, (batch.load(x + j) - top) * factor - tau);
    if (rest < kernels::lanes<T>) y = kernels::keep_some<T>(y, rest);
    count += xsimd::select(y > zero, one, zero);
    sum += y;
    squares += y * y;
  });
  return {kernels::lane_sum(count), kernels::lane_sum(sum), kernels::lane_sum(squares)};
}

/// Gradients of scores from those of weights that sum to one and move with weight s_j > 0 on their support: s_j (d_j − Σ s d / Σ s).
template <class T, class Share>
void support_gradients(kernels::AlignRow<T> const& row, Share const& share) {
  using V = kernels::Lanes<T>;
  T const total = kernels::sum_row<T>(row.count, share, row.weights);
  T const inner = kernels::sum_row<T>(
      row.count, [&](V const& a, V const& d) { return share(a) * d; }, row.weights, row.dweights);
  V const mean(total > 0 ? inner / total : T(0));
  kernels::transform_row<T>(
      row.dweights, row.count, [&](V const& a, V const& d) { return share(a) * (d - mean); }, row.weights, row.dweights);
}

}  // namespace heed
