// a_ij = sigmoid(e_ij − log n_i), n_i the number of keys that query i sees; rows need not sum to one

#include "autograd/ops/elementwise.hpp"
#include "nn/attention/align/rows.hpp"

namespace heed {

namespace {

struct Sigmoids {
  static constexpr bool wants_scores = false;

  template <class T>
  static void weights(kernels::AlignRow<T> const& row, bool) {
    kernels::Lanes<T> const shift(static_cast<T>(std::log(std::max(row.seen, 1.0))));
    set_weights(row, [&](auto const& e) { return sigmoid(e - shift); });
  }
  template <class T>
  static void gradients(kernels::AlignRow<T> const& row) {
    kernels::transform_row<T>(
        row.dweights, row.count, [](auto const& a, auto const& d) { return d * (a * (1 - a)); }, row.weights, row.dweights);
  }
  static Tensor composed(Tensor const& scores, Tensor const& visible, Tensor const& seen, Tensor const&) {
    return sigmoid(scores - log(clamp(seen, 1, static_cast<double>(scores.size(-1)) + 1))) * visible;
  }
};

Declared<AlignKind> const sigmoid_align{
    {"sigmoid", "sigmoid(e_ij − log n_i)", "Ramapuram et al. 2024", "n m", "everywhere", align_by_rows<Sigmoids>()}};

}  // namespace

}  // namespace heed
