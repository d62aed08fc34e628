// a_i = softmax(β(H_i) e_i), H_i the entropy of softmax(e_i) in nats, β(H) = max(−0.037 H⁴ + 0.481 H³ − 2.3 H² + 4.917 H − 1.791, 1), which
// was fitted on models that find the largest of many items

#include <array>
#include <utility>

#include "autograd/kernels/elementary.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "nn/attention/align/rows.hpp"

namespace heed {

namespace {

constexpr std::array polynomial{-0.037, 0.481, -2.3, 4.917, -1.791};

struct AdaptiveRows {
  static constexpr bool wants_scores = true;

  /// Σ e^{x_j}, and the mean of x under softmax, x the scores less their largest.
  template <class T>
  struct Plain {
    T max_score, total, mean;
    explicit Plain(kernels::AlignRow<T> const& row) : max_score(kernels::max_row(row.scores, row.count)) {
      using V = kernels::Lanes<T>;
      V const top(max_score);
      total = kernels::sum_row<T>(
          row.count, [&](V const& e) { return kernels::exponential(e - top); }, row.scores);
      mean = kernels::sum_row<T>(
                 row.count, [&](V const& e) { return kernels::exponential(e - top) * (e - top); }, row.scores) /
             total;
    }
    double entropy() const { return std::log(static_cast<double>(total)) - static_cast<double>(mean); }
  };
  /// β and β′.
  static std::pair<double, double> sharpness(double entropy) {
    double value = 0, slope = 0;
    for (double const c : polynomial) slope = slope * entropy + value, value = value * entropy + c;
    return value > 1 ? std::pair(value, slope) : std::pair(1.0, 0.0);
  }
  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool again) {
    if (!again) row.kept[0] = static_cast<T>(sharpness(Plain<T>(row).entropy()).first);
    kernels::Lanes<T> const factor(row.kept[0]);
    set_weights(row, [&](auto const& e) { return e * factor; });
    kernels::softmax_row<T>(row.weights, row.weights, row.count);
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    using V = kernels::Lanes<T>;
    Plain<T> const plain(row);
    auto const [value, slope] = sharpness(plain.entropy());
    kernels::softmax_row_backward<T>(row.weights, row.dweights, row.dweights, row.count);
    V const top(plain.max_score), mean(plain.mean), beta(static_cast<T>(value));
    T const dbeta = kernels::sum_row<T>(
        row.count, [&](V const& g, V const& e) { return g * (e - top); }, row.dweights, row.scores);
    V const dentropy(dbeta * static_cast<T>(slope) / plain.total);  // dH/de_j = −p_j (x_j − mean)
    kernels::transform_row<T>(
        row.dweights, row.count,
        [&](V const& g, V const& e) { return beta * g - dentropy * kernels::exponential(e - top) * (e - top - mean); }, row.dweights,
        row.scores);
  }
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const&, Tensor const&) {
    Tensor const p = masked_softmax(scores, visible);
    Tensor const entropy = -sum(p * log(clamp(p, 1e-37, 1)), {-1}, true);
    Tensor value = Tensor::zeros(entropy.shape(), entropy.dtype());
    for (double const c : polynomial) value = value * entropy + c;
    return masked_softmax(clamp(value, 1, 1e30) * scores, visible);
  }
};

Declared<AlignKind> const adaptive_align{{"adaptive", "softmax_j(β(H_i) e_ij), H_i the entropy of softmax(e_i)", "Veličković et al. 2024",
                                          "n m", "except where β(H) leaves 1", align_by_rows<AdaptiveRows>(), Compares::same_width, true}};

}  // namespace

}  // namespace heed
