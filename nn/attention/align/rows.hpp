#pragma once

#include <memory>
#include <utility>

#include "autograd/attention/pairs.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

/// An align of the attention kernels, from a struct with the static functions weights(row, again), gradients(row) and composed(…) and the
/// constant wants_scores, as RowAlign describes them, for rows of either precision.
template <class Rows>
inline constexpr RowAlign row_align{
    {{Rows::template weights<float>, Rows::template gradients<float>}, {Rows::template weights<double>, Rows::template gradients<double>}},
    Rows::wants_scores,
    Rows::composed};

/// An align of whole rows, with an optional parameter per head.
struct AlignByRows : Align {
  AlignByRows(RowAlign const& of_rows, Tensor of_heads) : rows(of_rows), parameter(std::move(of_heads)) {}
  void fill(AttentionForm& form, AttentionInputs& in, Tensor const&) const override { form.align = &rows, in.align = parameter; }

  RowAlign const& rows;
  Tensor parameter;
};

/// The factory of an align, with one parameter per head if it has a name; `start`: its initial value.
template <class Rows>
auto align_by_rows(std::string const& name = "", double (*start)(HeadShape const&) = nullptr) {
  return [=](Scope const& scope, AttentionSettings const&, HeadShape const& shape) {
    auto const parameter = [&] { return scope.parameter(name, {shape.heads}, Initial::constant(start(shape)), WeightDecay::off); };
    return std::make_unique<AlignByRows>(row_align<Rows>, name.empty() ? Tensor() : parameter());
  };
}

/// Sets the weights to f(e) of the scores.
template <class T, class F>
void set_weights(kernels::AlignRow<T> const& row, F const& f) {
  kernels::transform_row<T>(row.weights, row.count, f, row.scores);
}

/// Sets the gradients to f(d, e) of themselves and the scores.
template <class T, class F>
void set_gradients(kernels::AlignRow<T> const& row, F const& f) {
  kernels::transform_row<T>(row.dweights, row.count, f, row.dweights, row.scores);
}

/// Σ d (e − the largest e): that of gradients d that sum to 0 with their scores e, which weigh little where they are far from it.
template <class T>
T gradient_along_scores(kernels::AlignRow<T> const& row) {
  kernels::Lanes<T> const max_score(kernels::max_row(row.scores, row.count));
  auto const product = [&](auto const& d, auto const& e) { return d * (e - max_score); };
  return kernels::sum_row<T>(row.count, product, row.dweights, row.scores);
}

/// Rows of an align that sum to one, of scores times the parameter and multiple(n), n the number of keys that the query sees.
template <class Rows, double (*multiple)(double seen)>
struct ScaledRows {
  static constexpr bool wants_scores = true;

  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    kernels::Lanes<T> const factor(row.parameter * static_cast<T>(multiple(row.seen)));
    set_weights(row, [&](auto const& e) { return e * factor; });
    auto scaled = row;
    scaled.scores = row.weights;
    Rows::weights(scaled, again);
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    auto const by_parameter = static_cast<T>(multiple(row.seen));
    Rows::gradients(row);
    if (row.dparameter != nullptr) *row.dparameter += by_parameter * gradient_along_scores(row);
    kernels::Lanes<T> const factor(row.parameter * by_parameter);
    set_gradients(row, [&](auto const& d, auto const&) { return d * factor; });
  }
};

}  // namespace heed
