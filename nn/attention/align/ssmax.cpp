// a_i = softmax(s_h · log n_i · e_i), n_i the number of keys that query i sees: rows stay equally sharp in longer contexts

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/align/rows.hpp"

namespace heed {

namespace {

/// Kept: the largest score, and 1 / Σ e^{e_j}, less the largest.
struct SoftmaxRows {
  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    if (again) return kernels::scaled_exp_row(row.scores, row.kept[0], row.kept[1], row.weights, row.count);
    auto const sum = kernels::softmax_row<T>(row.scores, row.weights, row.count);
    row.kept[0] = sum.m, row.kept[1] = 1 / sum.total;
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    kernels::softmax_row_backward<T>(row.weights, row.dweights, row.dweights, row.count);
  }
};

double log_seen(double seen) { return std::log(std::max(seen, 1.0)); }

struct Ssmax : ScaledRows<SoftmaxRows, log_seen> {
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const& seen, Tensor const& parameter) {
    Tensor const count = clamp(seen, 1, static_cast<double>(scores.size(-1)) + 1);
    return masked_softmax(reshape(parameter, {-1, 1, 1}) * log(count) * scores, visible);
  }
};

Declared<AlignKind> const ssmax_align{
    {"ssmax", "softmax_j(s_h log n_i · e_ij)", "Nakanishi 2025", "n m", "everywhere",
     align_by_rows<Ssmax>("scale", [](HeadShape const& shape) { return 1 / std::log(std::max(2.0, static_cast<double>(shape.context))); }),
     Compares::same_width, true}};

}  // namespace

}  // namespace heed
