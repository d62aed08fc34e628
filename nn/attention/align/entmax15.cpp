// a_i = 1.5-entmax(e_i): between softmax and sparsemax. Scalable ("asentmax"): a_i = 1.5-entmax(s_i e_i), s_i = 1 + softplus(w_h · q_i)
// (log n_i)^γ_h, n_i the number of keys that query i sees: rows stay as sparse in longer contexts

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/attention/align/rows.hpp"

namespace heed {

namespace {

/// Rows of 1.5-entmax (Peters et al. 2019).
struct Entmax15Rows {
  static constexpr bool wants_scores = false;

  // Kept: the largest score, and the threshold below its half. Newton's steps for Σ max(z − τ, 0)² = 1 from below, z = e/2 less its
  // largest, until the solution for the support at hand has that support.
  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    using V = kernels::Lanes<T>;
    if (!again) {
      T const max_score = kernels::max_row(row.scores, row.count);
      row.kept[0] = max_score, row.kept[1] = threshold(row.scores, row.count, max_score);
    }
    V const max_score(row.kept[0]), tau(row.kept[1]), zero(T(0)), half(T(0.5));
    kernels::transform_row<T>(
        row.weights, row.count,
        [&](V const& e) {
          V const y = kernels::greater(zero, (e - max_score) * half - tau);
          return y * y;
        },
        row.scores);
  }
  template <class T>
  static T threshold(T const* scores, Index n, T max_score) {
    T tau = -1;
    for (int step = 0; step < 100; ++step) {
      auto const at = sums_above<T>(scores, n, max_score, T(0.5), tau);
      if (!(at.count > 0)) return at.sum;  // a score is NaN
      T const mean = at.sum / at.count, rest = (1 - (at.squares - at.sum * mean)) / at.count;
      if (rest >= 0) {
        T const solution = tau + mean - std::sqrt(rest);
        if (sums_above<T>(scores, n, max_score, T(0.5), solution).count == at.count && solution >= tau) return solution;
      }
      T const newton = tau + (at.squares - 1) / (2 * at.sum);
      if (!(newton > tau)) return tau;
      tau = newton;
    }
    return tau;
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    using V = kernels::Lanes<T>;
    support_gradients(row, [](V const& a) { return xsimd::sqrt(a); });
  }
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const&, Tensor const&) { return entmax15(scores, visible); }
};

Declared<AlignKind> const entmax15_align{{"entmax15", "max(e_ij/2 − τ_i, 0)², Σ_j = 1", "Peters et al. 2019", "n m log m",
                                          "everywhere, once: the derivative has kinks where the support changes",
                                          align_by_rows<Entmax15Rows>(), Compares::same_width, true}};

/// 1.5-entmax of the scores times the row's parameter.
struct ScaledEntmaxRows {
  static constexpr bool wants_scores = true;

  template <class T>
  static kernels::AlignRow<T> scaled(kernels::AlignRow<T> const& row) {
    kernels::Lanes<T> const factor(row.parameter);
    kernels::transform_row<T>(
        row.weights, row.count, [&](auto const& e) { return e * factor; }, row.scores);
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
          row.count, [&](auto const& d, auto const& e) { return d * (e - max_score); }, row.dweights, row.scores);
    kernels::transform_row<T>(
        row.dweights, row.count, [&](auto const& d) { return d * factor; }, row.dweights);
  }
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const&, Tensor const& parameter) {
    return entmax15(scores * unsqueeze(parameter, 3), visible);
  }
};

struct ScalableEntmax : Align {
  ScalableEntmax(Scope const& scope, AttentionSettings const&, HeadShape const& shape)
      : vector(scope.parameter("sharpness", {shape.heads, shape.width}, Initial::preserving(shape.width), WeightDecay::on)),
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
     "everywhere, once: the derivative has kinks where the support changes", makes<ScalableEntmax>, Compares::same_width, true}};

}  // namespace

}  // namespace heed
