// a_i = 1.5-entmax(s_i e_i), s_i = 1 + softplus(w_h · q_i) (log n_i)^γ_h, n_i the number of keys that query i sees: rows stay as sparse in
// longer contexts

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/align/entmax15.hpp"

namespace heed {

namespace {

/// 1.5-entmax of the scores times the row's parameter.
struct ScaledEntmaxRows {
  static constexpr bool wants_scores = true;

  template <class T>
  static kernels::AlignRow<T> scaled(kernels::AlignRow<T> const& row) {
    kernels::Lanes<T> const factor(row.parameter);
    kernels::transform_row<T>(
        row.weights, row.count, [&](auto const& e) { return e * factor; }, static_cast<T const*>(row.scores));
    auto inner = row;
    inner.scores = row.weights;
    return inner;
  }
  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    Entmax15Rows::weights(scaled(row), again);
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    Entmax15Rows::gradients(row);
    // The gradients sum to 0: scores less their largest.
    kernels::Lanes<T> const max_score(kernels::max_row(row.scores, row.count)), factor(row.parameter);
    if (row.dparameter != nullptr)
      *row.dparameter += kernels::sum_row<T>(
          row.count, [&](auto const& d, auto const& e) { return d * (e - max_score); }, static_cast<T const*>(row.dweights),
          static_cast<T const*>(row.scores));
    kernels::transform_row<T>(
        row.dweights, row.count, [&](auto const& d) { return d * factor; }, static_cast<T const*>(row.dweights));
  }
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const&, Tensor const& parameter) {
    return entmax15(scores * unsqueeze(parameter, 3), visible);
  }
};

struct ScalableEntmax : Align {
  ScalableEntmax(Scope const& scope, HeadShape const& shape)
      : vector(scope.parameter("sharpness", {shape.heads, shape.width}, Initial::normal(1 / std::sqrt(static_cast<double>(shape.width))),
                               WeightDecay::on)),
        exponent(scope.parameter("exponent", {shape.heads}, Initial::constant(0), WeightDecay::off)) {}
  void fill(AttentionForm& form, AttentionInputs& in, Tensor const& query) const override {
    form.align = row_align<ScaledEntmaxRows>();
    Index const batch = query.size(0), queries = query.size(1), width = query.size(2) / form.heads;
    Tensor const apart = reshape(query, {batch, queries, form.heads, width});
    Tensor const content = transpose(sum(apart * vector, {3}), 1, 2);  // [B, H, n]
    Visibility const& sees = form.visibility;
    Tensor const counts = clamp(sees.counts(queries, in.key.size(1), query.dtype()), 2, 1e18);  // log 1 = 0 has no derivative by γ
    Tensor const power = exp(reshape(exponent, {1, -1, 1}) * log(log(reshape(counts, {-1, 1, queries}))));
    in.align_of_row = 1 + softplus(content) * power;
  }

  Tensor vector;    // w: [H, d]
  Tensor exponent;  // γ: [H]
};

Declared<AlignKind> const asentmax_align{
    {"asentmax", "1.5-entmax_j(s_i e_ij), s_i = 1 + softplus(w_h · q_i) (log n_i)^γ_h", "Vasylenko et al. 2025", "n m log m",
     "everywhere, once: the derivative has kinks where the support changes",
     [](Scope const& scope, AttentionSettings const&, HeadShape const& shape) { return std::make_unique<ScalableEntmax>(scope, shape); },
     Compares::same_width, true}};

}  // namespace

}  // namespace heed
