// Weights that can be 0. Sparsemax: a_i = the point of the simplex that is nearest to e_i. a_i = 1.5-entmax(e_i): between softmax and
// sparsemax. Scalable ("asentmax"): a_i = 1.5-entmax(s_i e_i), s_i = 1 + softplus(w_h · q_i) (log n_i)^γ_h, n_i the number of keys that
// query i sees: rows stay as sparse in longer contexts

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/align/rows.hpp"

namespace heed {

namespace {

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

/// Rows a_j = weight(max(z_j − τ, 0)) with sum one, z = scale · e less its largest, which move with weight share(a_j) on their support.
/// The threshold τ is found from `above`, the sums above a given one. Kept: the largest score, and τ.
template <class Entmax>
struct EntmaxRows {
  static constexpr bool wants_scores = false;

  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    using V = kernels::Lanes<T>;
    constexpr T scale(Entmax::scale);
    if (!again) {
      T const top = kernels::max_row(row.scores, row.count);
      auto const above = [&](T tau) { return sums_above<T>(row.scores, row.count, top, scale, tau); };
      row.kept[0] = top, row.kept[1] = Entmax::template threshold<T>(above);
    }
    V const max_score(row.kept[0]), tau(row.kept[1]), factor(scale), zero(T(0));
    set_weights(row, [&](V const& e) { return Entmax::weight(kernels::greater(zero, (e - max_score) * factor - tau)); });
  }
  /// s_j (d_j − Σ s d / Σ s), s the shares.
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    using V = kernels::Lanes<T>;
    auto const part = [](V const& a, V const& d) { return Entmax::share(a) * d; };
    T const total = kernels::sum_row<T>(row.count, Entmax::share, row.weights);
    V const mean(total > 0 ? kernels::sum_row<T>(row.count, part, row.weights, row.dweights) / total : T(0));
    auto const moved = [&](V const& a, V const& d) { return part(a, d - mean); };
    kernels::transform_row<T>(row.dweights, row.count, moved, row.weights, row.dweights);
  }
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const&, Tensor const&) {
    return Entmax::composed(scores, visible);
  }
};

struct Sparsemax {
  static constexpr double scale = 1;
  static constexpr auto weight = [](auto const& y) { return y; };
  static constexpr auto share = []<class V>(V const& a) { return xsimd::select(a > V(0), V(1), V(0)); };
  static constexpr auto composed = sparsemax;

  /// Σ max(z − τ, 0) − 1 falls and is convex: Newton ends where the support stays.
  template <class T, class Above>
  static T threshold(Above const& above) {
    T tau = -1, before = 0;
    for (int step = 0; step < 100; ++step) {
      auto const at = above(tau);
      if (at.count == before) break;
      before = at.count;
      tau += (at.sum - 1) / at.count;
    }
    return tau;
  }
};

struct Entmax15 {
  static constexpr double scale = 0.5;
  static constexpr auto weight = [](auto const& y) { return y * y; };
  static constexpr auto share = [](auto const& a) { return xsimd::sqrt(a); };
  static constexpr auto composed = entmax15;

  /// Newton's steps for Σ max(z − τ, 0)² = 1 from below, until the solution for the support at hand has that support.
  template <class T, class Above>
  static T threshold(Above const& above) {
    T tau = -1;
    for (int step = 0; step < 100; ++step) {
      auto const at = above(tau);
      if (!(at.count > 0)) return at.sum;  // a score is NaN
      T const mean = at.sum / at.count, rest = (1 - (at.squares - at.sum * mean)) / at.count;
      if (rest >= 0) {
        T const solution = tau + mean - std::sqrt(rest);
        if (above(solution).count == at.count && solution >= tau) return solution;
      }
      T const newton = tau + (at.squares - 1) / (2 * at.sum);
      if (!(newton > tau)) return tau;
      tau = newton;
    }
    return tau;
  }
};

Declared<AlignKind> const sparsemax_align{{"sparsemax", "max(e_ij − τ_i, 0), Σ_j = 1", "Martins & Astudillo 2016", "n m log m",
                                           "except where the support changes", align_by_rows<EntmaxRows<Sparsemax>>(), Compares::same_width,
                                           true}};
Declared<AlignKind> const entmax15_align{{"entmax15", "max(e_ij/2 − τ_i, 0)², Σ_j = 1", "Peters et al. 2019", "n m log m",
                                          "everywhere, once: the derivative has kinks where the support changes",
                                          align_by_rows<EntmaxRows<Entmax15>>(), Compares::same_width, true}};

double once(double) { return 1; }

struct ScaledEntmaxRows : ScaledRows<EntmaxRows<Entmax15>, once> {
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const&, Tensor const& parameter) {
    return entmax15(scores * unsqueeze(parameter, 3), visible);
  }
};

struct ScalableEntmax : Align {
  ScalableEntmax(Scope const& scope, AttentionSettings const&, HeadShape const& shape)
      : vector(scope.parameter("sharpness", {shape.heads, shape.width}, Initial::preserving(shape.width), WeightDecay::on)),
        exponent(scope.parameter("exponent", {shape.heads}, Initial::constant(0), WeightDecay::off)) {}
  void fill(AttentionForm& form, AttentionInputs& in, Tensor const& query) const override {
    form.align = &row_align<ScaledEntmaxRows>;
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
