// Hard attention as a composition; the kernel: hard_read_kernel.hpp.

#include "autograd/attention/hard_read.hpp"

#include <cmath>

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/hard_read_kernel.hpp"
#include "autograd/check.hpp"
#include "autograd/graph.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

/// f(row, the stream of its sequence and head, its position) for each row of weights [B, H, n, m].
template <class F>
void for_each_row(HardRead const& hard, Tensor const& weights, std::int64_t offset, F const& f) {
  std::int64_t const queries = weights.size(2);
  double const cost = 4 * static_cast<double>(weights.size(3));
  parallel_for(weights.size(0) * weights.size(1) * queries, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      f(row, hard.streams[static_cast<std::size_t>(row / queries)], static_cast<std::uint64_t>(offset + row % queries));
  });
}

Shape without_last(Tensor const& x) { return Shape(std::span(x.shape().begin(), x.rank() - 1)); }

/// int64 [B, H, n].
Tensor draw(HardRead const& hard, Tensor const& weights, std::int64_t offset) {
  Tensor chosen(without_last(weights), DType::int64);
  auto const out = chosen.mutable_data<std::int64_t>();
  std::int64_t const keys = weights.size(-1);
  kernels::with_real(weights.dtype(), [&](auto type) {
    auto const* const w = weights.data<decltype(type)>().data();
    for_each_row(hard, weights, offset, [&](std::int64_t row, Stream const& of_head, std::uint64_t position) {
      out[static_cast<std::size_t>(row)] = kernels::drawn(w + row * keys, keys, of_head.uniform(position));
    });
  });
  return chosen;
}

/// −log(−log u), [B, H, n, m].
Tensor gumbel_noise(HardRead const& hard, Tensor const& weights, std::int64_t offset) {
  Tensor noise(weights.shape(), DType::float64);
  double* const out = noise.mutable_data<double>().data();
  std::int64_t const keys = weights.size(-1);
  for_each_row(hard, weights, offset, [&](std::int64_t row, Stream const& of_head, std::uint64_t position) {
    Stream const of_query = of_head.child(position);
    for (std::int64_t j = 0; j < keys; ++j)
      out[row * keys + j] = -std::log(-std::log(inside_of_unit(of_query.uniform(static_cast<std::uint64_t>(j)))));
  });
  return noise.to(weights.dtype());
}

}  // namespace

ReadWeights composed_read(HardRead const& hard, Tensor const& weights, std::int64_t offset) {
  using ChosenBy = HardRead::ChosenBy;
  Tensor const zero = Tensor::scalar(0, weights.dtype()), possible = greater(weights.detach(), zero);
  Tensor soft = weights;
  if (hard.choice == ChosenBy::gumbel) {
    Tensor const logits = log(masked_fill(weights, 1 - possible, 1)) + gumbel_noise(hard, weights, offset);
    soft = masked_softmax(scale(logits, 1 / hard.temperature), possible);
  }
  bool const draws = hard.choice == ChosenBy::sampled || hard.choice == ChosenBy::straight_through;
  Tensor const chosen = hard.chosen.defined() ? hard.chosen : draws ? draw(hard, weights.detach(), offset) : argmax(soft, -1);
  Tensor const reads = greater(sum(weights.detach(), {-1}, true), zero);  // [B, H, n, 1]
  ReadWeights result{one_hot(chosen, weights.size(-1), weights.dtype()) * reads, {}, {}};
  if (hard.choice == ChosenBy::straight_through || hard.choice == ChosenBy::gumbel)
    result.read = result.read + (soft - stop_gradient(soft));
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
  std::int64_t const heads = form.heads, width = result.size(2) - 2 * heads;
  auto const of_heads = [&](std::int64_t first) { return permute(slice(result, 2, first, first + heads), {0, 2, 1}); };
  return {slice(result, 2, 0, width), of_heads(width), of_heads(width + heads)};
}

namespace {

/// Fused attention with a scored hard read of given keys, so that finite differences do not change the choice.
std::vector<Sample> hard_samples(std::optional<WeightDropout> const& dropout) {
  std::vector<Sample> samples;
  auto const add = [&](Visibility const& visibility, double window, bool gaussian, std::int64_t groups, std::int64_t rows,
                       std::int64_t keys, std::vector<std::int64_t> const& chosen) {
    AttentionForm form{.heads = 2, .visibility = visibility, .scale = 0.7};
    form.window = window, form.gaussian = gaussian, form.deviation = 0.9, form.key_heads = groups, form.dropout = dropout;
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 4 * rows; ++i) all.push_back(chosen[static_cast<std::size_t>(i) % chosen.size()]);
    form.hard = HardRead{.choice = HardRead::ChosenBy::sampled, .chosen = Tensor::of(all, {2, 2, rows}), .scored = true};
    std::vector<SampleInput> inputs{{{2, rows, 4}}, {{2, keys, 2 * groups}}, {{2, keys, 3 * groups}}};
    if (gaussian) inputs.push_back({{2, 2, rows, 1}, 1.35, 1.6});
    auto const arranged = [=](std::vector<Tensor> const& x) {
      AttentionInputs in{x[0], x[1], x[2]};
      if (gaussian) in.centres = x[3];
      return in;
    };
    samples.push_back({std::move(inputs), [=](std::vector<Tensor> const& x) { return fused_attention(form, arranged(x)); },
                       [=](std::vector<Tensor> const& x) { return attention_reference(form, arranged(x)); }});
  };
  Visibility const causal{.causal = true, .lengths = {}, .offset = 0};
  Visibility const padded{.causal = false, .lengths = Tensor::of(std::vector<std::int64_t>{4, 0}, {2}), .offset = 0};
  add({}, 0, false, 2, 3, 5, {0, 3, 4, 1});
  add(causal, 0, false, 1, 5, 5, {0, 1, 0, 2, 4});
  add(padded, 0, false, 2, 3, 5, {0, 3, 4, 2, 0});  // some of the chosen keys are not visible
  add({}, 1.7, true, 2, 4, 6, {1, 2, 0, 3});
  add(causal, 1, false, 2, 4, 4, {0, 1, 2, 3});
  return samples;
}

void read_hard(HardRead const& hard) {
  Tensor const x = Tensor::zeros({1, 2, 4}, DType::float64);
  AttentionForm form{.heads = 2, .visibility = {}};
  form.hard = hard;
  fused_attention(form, {x, x, x});
}

Declared<OperationCheck> const hard_check{
    {"fused_attention with a hard read",
     "v_J, a_iJ and the entropy of a_i, J ~ a_i",
     hard_samples(std::nullopt),
     {{[] { read_hard({.choice = HardRead::ChosenBy::sampled, .streams = {}, .chosen = {}}); },
       "attention: 0 streams of a hard read for 1 sequences of 2 heads"},
      {[] {
         read_hard({.streams = {}, .chosen = Tensor::of(std::vector<std::int64_t>{0, 1, 2, 0}, {1, 2, 2})});
       },
       "attention: a hard read of key 2, of 2"}}}};
Declared<OperationCheck> const hard_dropout_check{{"fused_attention with a hard read and dropout",
                                                   "D_iJ v_J, a_iJ and the entropy of a_i, J ~ a_i",
                                                   hard_samples(WeightDropout{0.3, Stream(1, "dropout")}),
                                                   {}}};

}  // namespace

}  // namespace heed
