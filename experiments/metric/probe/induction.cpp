// Whether a head finds what followed the last time (Olsson et al. 2022): random tokens come twice,
//
//     c a b d c a b d
//             ↑ attends to the a that came after the first c
//
// and only the repetition determines where to attend.

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/metric/probe/heads.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

/// The mean weight from a token of the second half to the one after its first coming.
double prefix_matching(AttentionRecord const& layer, Index head) {
  Tensor const& weights = layer.weights;
  Index const rows = weights.size(0), heads = weights.size(1), length = weights.size(2), half = length / 2;
  double sum = 0;
  for (Index b = 0; b < rows; ++b)
    for (Index i = half; i < length; ++i) sum += weights.at(((b * heads + head) * length + i) * length + i - half + 1);
  return sum / static_cast<double>(rows * half);
}

std::optional<std::string> unavailable(Model const& model) {
  if (!model.decode({}, {})) return "it needs a causal model of one sequence of tokens";
  NoGrad const no_grad;
  if (recorded_attention(model, {{"inputs", Tensor::full({1, 2}, 0, DType::int64)}}, {.weights = true}).empty())
    return "the model has no attention";
  if (model.context() < 4) return fmt::format("model.context: {} is too short for two repeated tokens", model.context());
  return std::nullopt;
}

Declared<Probe> const induction_probe{probe_of_heads(
    "induction", "attention.induction", "a_ij, j = i − T/2 + 1, i ≥ T/2",
    "prefix matching: in sequences of T random tokens whose second half repeats the first, the weight on the token after the previous "
    "occurrence of the current one, mean over the second half. Up to 1 for an induction head, small for others",
    Probe::Input::repetition, prefix_matching, {}, unavailable)};

}  // namespace

}  // namespace heed
