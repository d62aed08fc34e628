// a_ij = e^{e_ij} / (e^{s_h} + Σ_j e^{e_ij}): a softmax with an extra key without a value; its score s_h is learned, or 0 ("softmax1"): a
// head may read nothing

#include "autograd/ops/softmax.hpp"
#include "nn/attention/align/rows.hpp"

namespace heed {

namespace {

/// s is the parameter, or 0.
struct SoftmaxWithSink {
  static constexpr bool wants_scores = false;

  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    if (again) return kernels::scaled_exp_row(row.scores, row.kept[0], row.kept[1], row.weights, row.count);
    T const m = std::max(kernels::max_row(row.scores, row.count), row.parameter);
    T const total = kernels::exp_row(row.scores, m, row.weights, row.count) + std::exp(row.parameter - m);
    row.kept[0] = m, row.kept[1] = 1 / total;
    kernels::Lanes<T> const factor(row.kept[1]);
    auto const scaled = [&](auto const& w) { return w * factor; };
    kernels::transform_row<T>(row.weights, row.count, scaled, row.weights);
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    T const inner = kernels::dot_row(row.weights, row.dweights, row.count);
    kernels::softmax_row_backward<T>(row.weights, row.dweights, row.dweights, row.count);
    if (row.dparameter != nullptr) *row.dparameter -= std::exp(row.parameter - row.kept[0]) * row.kept[1] * inner;
  }
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const&, Tensor const& parameter) {
    return softmax_with_sink(scores, visible, parameter.defined() ? parameter : Tensor::zeros({scores.size(1)}, scores.dtype()));
  }
};

Declared<AlignKind> const sink_align{{"sink", "e^{e_ij} / (e^{s_h} + Σ_j e^{e_ij})", "Xiao et al. 2023, gpt-oss 2025", "n m", "everywhere",
                                      align_by_rows<SoftmaxWithSink>("sink", [](HeadShape const&) { return 0.0; })}};
Declared<AlignKind> const softmax1_align{
    {"softmax1", "e^{e_ij} / (1 + Σ_j e^{e_ij})", "Miller 2023", "n m", "everywhere", align_by_rows<SoftmaxWithSink>()}};

}  // namespace

}  // namespace heed
