// a_ij = max(e^{e_ij} − 1, 0) / Σ_j |e^{e_ij} − 1|: scores below 0 get nothing, and rows need not sum to one

#include <limits>

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "nn/attention/align/rows.hpp"

namespace heed {

namespace {

struct Softpick {
  static constexpr bool wants_scores = true;
  static constexpr double min_sum = 1e-8;

  // All divided by e^m, m the largest score or 0, so that nothing overflows; kept: m and the sum.
  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    using V = kernels::Lanes<T>;
    if (!again) row.kept[0] = std::max(kernels::max_row(row.scores, row.count), T(0));
    V const m(row.kept[0]), one(std::exp(-row.kept[0])), zero(T(0));
    auto const above = [&](V const& e) { return kernels::exponential(e - m) - one; };
    auto const size = [&](V const& e) { return xsimd::abs(above(e)); };
    if (!again) row.kept[1] = static_cast<T>(min_sum) + kernels::sum_row<T>(row.count, size, row.scores);
    V const factor(T(1) / row.kept[1]);
    set_weights(row, [&](V const& e) { return kernels::greater(zero, above(e)) * factor; });
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    using V = kernels::Lanes<T>;
    V const inner(kernels::dot_row(row.weights, row.dweights, row.count));
    V const m(row.kept[0]), one(std::exp(-row.kept[0])), zero(T(0)), factor(T(1) / row.kept[1]);
    set_gradients(row, [&](V const& d, V const& e) {
      V const power = kernels::exponential(e - m), above = power - one;
      V const slope = xsimd::select(above > zero, d - inner, xsimd::select(above < zero, inner, zero));
      return slope * power * factor;
    });
  }
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const&, Tensor const&) {
    if (scores.size(-1) == 0) return scores;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Tensor const m = clamp(max(masked_fill(scores.detach(), 1 - visible, -infinity), {-1}, true), 0, infinity);
    Tensor const above = (exp(masked_fill(scores - m, 1 - visible, 0)) - exp(-m)) * visible;
    return relu(above) / (sum(abs(above), {-1}, true) + min_sum);
  }
};

Declared<AlignKind> const softpick_align{{"softpick", "max(e^{e_ij} − 1, 0) / Σ_j |e^{e_ij} − 1|", "Zuhri et al. 2025", "n m",
                                          "except where a score is 0", align_by_rows<Softpick>()}};

}  // namespace

}  // namespace heed
