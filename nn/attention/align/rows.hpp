#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "autograd/attention/attention.hpp"
#include "autograd/attention/row_align.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

/// An align of whole rows, with one number a head if it has a parameter.
class AlignByRows : public Align {
 public:
  explicit AlignByRows(std::shared_ptr<RowAlign const> rows, Tensor parameter = {})
      : rows_(std::move(rows)), parameter_(std::move(parameter)) {}
  void fill(AttentionForm& form, AttentionInputs& in, Tensor const&) const override { form.align = rows_, in.align = parameter_; }

 private:
  std::shared_ptr<RowAlign const> rows_;
  Tensor parameter_;
};

/// How an align without parameters is made.
template <class Rows>
auto by_rows() {
  return [](Scope const&, AttentionSettings const&, HeadShape const&) { return std::make_unique<AlignByRows>(row_align<Rows>()); };
}
/// With one a head, of this name; `start`: at first.
template <class Rows>
auto by_rows(std::string const& name, double (*start)(HeadShape const&)) {
  return [=](Scope const& scope, AttentionSettings const&, HeadShape const& shape) {
    return std::make_unique<AlignByRows>(row_align<Rows>(),
                                         scope.parameter(name, {shape.heads}, Initial::constant(start(shape)), WeightDecay::off));
  };
}

/// e^{e_j}/(e^s + Σ_j e^{e_j}): a softmax with a key more that is not read, s the parameter, or 0.
struct SoftmaxBeside {
  static constexpr bool wants_scores = false;

  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    if (!again) {
      T const m = std::max(kernels::max_row(row.scores, row.count), row.parameter);
      T const total = kernels::exp_row(row.scores, m, row.weights, row.count) + std::exp(row.parameter - m);
      kernels::Lanes<T> const factor(T(1) / total);
      row.kept[0] = m, row.kept[1] = 1 / total;
      kernels::transform_row<T>(
          row.weights, row.count, [&](auto const& w) { return w * factor; }, static_cast<T const*>(row.weights));
      return;
    }
    kernels::scaled_exp_row(row.scores, row.kept[0], row.kept[1], row.weights, row.count);
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    T const inner = kernels::dot_row(row.weights, row.dweights, row.count);
    kernels::softmax_row_backward<T>(row.weights, row.dweights, row.dweights, row.count);
    if (row.dparameter != nullptr) *row.dparameter -= std::exp(row.parameter - row.kept[0]) * row.kept[1] * inner;
  }
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const&, Tensor const& parameter) {
    return softmax_beside(scores, visible, parameter.defined() ? parameter : Tensor::zeros({scores.size(1)}, scores.dtype()));
  }
};

}  // namespace heed
