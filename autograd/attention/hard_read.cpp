// Hard attention as a composition; the kernel: hard_read_kernel.hpp.

#include <cmath>

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/hard_read_kernel.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/ops/operations.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

/// f(row, the stream of its sequence and head, its position) for each row of weights [B, H, n, m].
template <class F>
void for_each_row(HardRead const& hard, Tensor const& weights, Visibility const& visibility, F const& f) {
  Index const queries = weights.size(2), offset = visibility.first_key + visibility.offset;
  double const cost = 4 * static_cast<double>(weights.size(3));
  auto const each = [&](Index row) { f(row, at(hard.streams, row / queries), static_cast<std::uint64_t>(offset + row % queries)); };
  parallel_each(weights.size(0) * weights.size(1) * queries, cost, each, Cut::whole);
}

/// int64 [B, H, n].
Tensor draw(HardRead const& hard, Tensor const& weights, Visibility const& visibility) {
  Tensor chosen({weights.size(0), weights.size(1), weights.size(2)}, DType::int64);
  auto const out = chosen.mutable_data<std::int64_t>();
  Index const keys = weights.size(-1);
  kernels::with_real(weights.dtype(), [&](auto type) {
    auto const* const w = weights.data<decltype(type)>().data();
    for_each_row(hard, weights, visibility, [&](Index row, Stream const& of_head, std::uint64_t position) {
      at(out, row) = kernels::drawn(w + row * keys, keys, of_head.uniform(position));
    });
  });
  return chosen;
}

/// −log(−log u), [B, H, n, m].
Tensor gumbel_noise(HardRead const& hard, Tensor const& weights, Visibility const& visibility) {
  Tensor noise(weights.shape(), DType::float64);
  double* const out = noise.mutable_data<double>().data();
  Index const keys = weights.size(-1);
  for_each_row(hard, weights, visibility, [&](Index row, Stream const& of_head, std::uint64_t position) {
    Stream const of_query = of_head.child(position);
    for (Index j = 0; j < keys; ++j)
      out[row * keys + j] = -std::log(-std::log(inside_of_unit(of_query.uniform(static_cast<std::uint64_t>(visibility.first_key + j)))));
  });
  return noise.to(weights.dtype());
}

}  // namespace

ReadWeights composed_read(HardRead const& hard, Tensor const& weights, Visibility const& visibility) {
  using ChosenBy = HardRead::ChosenBy;
  Tensor const zero = Tensor::scalar(0, weights.dtype()), possible = greater(weights.detach(), zero);
  Tensor soft = weights;
  if (hard.choice == ChosenBy::gumbel) {
    Tensor const logits = log(masked_fill(weights, 1 - possible, 1)) + gumbel_noise(hard, weights, visibility);
    soft = masked_softmax(scale(logits, 1 / hard.temperature), possible);
  }
  bool const draws = hard.choice == ChosenBy::sampled || hard.choice == ChosenBy::straight_through;
  Tensor const chosen = hard.chosen.defined() ? hard.chosen : draws ? draw(hard, weights.detach(), visibility) : argmax(soft, -1);
  Tensor const reads = greater(sum(weights.detach(), {-1}, true), zero);  // [B, H, n, 1]
  ReadWeights result{one_hot(chosen, weights.size(-1), weights.dtype()) * reads, {}, {}};
  if (hard.as_if_soft()) result.read = result.read + (soft - stop_gradient(soft));
  if (!hard.scored) return result;
  Tensor const of_none = squeeze(1 - reads, -1) * equal(chosen.to(weights.dtype()), zero);
  result.probability = squeeze(gather(weights, -1, unsqueeze(chosen, -1)), -1) + of_none;
  result.entropy = -sum(weights * log(masked_fill(weights, 1 - possible, 1)), {-1});
  return result;
}

Tensor joined_read(ScoredContext const& read) {
  if (!read.probability.defined()) return read.context;
  return concatenate({read.context, permute(read.probability, {0, 2, 1}), permute(read.entropy, {0, 2, 1})}, 2);
}

ScoredContext parted_read(AttentionForm const& form, Tensor const& result) {
  if (form.scores_of_choice() == 0) return {result};
  Index const heads = form.heads, width = result.size(2) - 2 * heads;
  auto const of_heads = [&](Index first) { return permute(slice(result, 2, first, first + heads), {0, 2, 1}); };
  return {slice(result, 2, 0, width), of_heads(width), of_heads(width + heads)};
}

}  // namespace heed
