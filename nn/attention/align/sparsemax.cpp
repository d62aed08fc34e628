// a_i = the point of the simplex that is nearest to e_i

#include "autograd/ops/softmax.hpp"
#include "nn/attention/align/rows.hpp"

namespace heed {

namespace {

struct SparsemaxRows {
  static constexpr bool wants_scores = false;

  // Kept: the largest score, and the threshold below it. Σ max(z − τ, 0) − 1 falls and is convex: Newton ends where the support stays.
  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    using V = kernels::Lanes<T>;
    if (!again) {
      T const max_score = kernels::max_row(row.scores, row.count);
      T tau = -1, before = 0;
      for (int step = 0; step < 100; ++step) {
        auto const found = sums_above<T>(row.scores, row.count, max_score, T(1), tau);
        if (found.count == before) break;
        before = found.count;
        tau += (found.sum - 1) / found.count;
      }
      row.kept[0] = max_score, row.kept[1] = tau;
    }
    V const max_score(row.kept[0]), tau(row.kept[1]), zero(T(0));
    kernels::transform_row<T>(
        row.weights, row.count, [&](V const& e) { return kernels::greater(zero, e - max_score - tau); }, row.scores);
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    using V = kernels::Lanes<T>;
    support_gradients(row, [](V const& a) { return xsimd::select(a > V(T(0)), V(T(1)), V(T(0))); });
  }
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const&, Tensor const&) { return sparsemax(scores, visible); }
};

Declared<AlignKind> const sparsemax_align{{"sparsemax", "max(e_ij − τ_i, 0), Σ_j = 1", "Martins & Astudillo 2016", "n m log m",
                                           "except where the support changes", align_by_rows<SparsemaxRows>(), Compares::same_width, true}};

}  // namespace

}  // namespace heed
