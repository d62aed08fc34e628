// a_i = softmax(s_h · log n_i · e_i), n_i the number of keys that query i sees: rows stay equally sharp in longer contexts

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/attention/align/rows.hpp"

namespace heed {

namespace {

struct Ssmax {
  static constexpr bool wants_scores = true;

  template <class T>
  static T log_seen(kernels::AlignRow<T> const& row) {
    return static_cast<T>(std::log(std::max(row.seen, 1.0)));
  }
  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    kernels::Lanes<T> const factor(row.parameter * log_seen(row));
    kernels::transform_row<T>(
        row.weights, row.count, [&](auto const& e) { return e * factor; }, row.scores);
    if (again) {
      kernels::scaled_exp_row(row.weights, row.kept[0], row.kept[1], row.weights, row.count);
    } else {
      auto const sum = kernels::softmax_row<T>(row.weights, row.weights, row.count);
      row.kept[0] = sum.m, row.kept[1] = 1 / sum.total;
    }
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    T const factor = log_seen(row);
    kernels::softmax_row_backward<T>(row.weights, row.dweights, row.dweights, row.count);
    // The gradients sum to 0: scores less their largest, which weigh little where they are far from it.
    kernels::Lanes<T> const max_score(kernels::max_row(row.scores, row.count));
    if (row.dparameter != nullptr)
      *row.dparameter +=
          factor * kernels::sum_row<T>(
                       row.count, [&](auto const& d, auto const& e) { return d * (e - max_score); }, row.dweights, row.scores);
    kernels::Lanes<T> const scale(row.parameter * factor);
    kernels::transform_row<T>(
        row.dweights, row.count, [&](auto const& d) { return d * scale; }, row.dweights);
  }
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
