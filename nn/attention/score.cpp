#include <fmt/format.h>

#include "autograd/error.hpp"
#include "nn/attention/pair_score.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

Tensor Score::operator()(Tensor const& query, Tensor const& key) const {
  std::int64_t const heads = query.size(1);
  Tensor const keys = merge_heads(key);
  auto const score = fused(merge_heads(query), keys, {heads, heads});
  if (!score) throw Error("score: it has neither formulas nor operations");
  AttentionForm form{.heads = heads, .visibility = {}, .scale = score->scale};
  AttentionInputs in{score->query, score->key.defined() ? score->key : keys, {}};
  form.sum = score->sum, form.finish = score->finish;
  in.weight = score->weight, in.parameter = score->parameter, in.of_query = score->of_query, in.of_key = score->of_key;
  return composed_scores(form, in, composed_sums(form, in));
}

Tensor Align::operator()(Tensor const& scores, Tensor const& query, Visibility const& visibility) const {
  FusedAlign const align = fused(merge_heads(query), scores.size(1), scores.size(3), visibility);
  AttentionForm form{.heads = scores.size(1), .visibility = visibility};
  form.align = align.rows, form.window = align.window, form.gaussian = align.gaussian, form.deviation = align.deviation;
  AttentionInputs in;
  in.centres = align.centres, in.align = align.parameter;
  return composed_weights(form, in, scores);
}

Tensor Read::operator()(Tensor const& weights, Visibility const& visibility, Pass const& pass, std::string const& place) const {
  auto const hard = choice(weights.shape(), visibility, pass, place);
  if (!hard) return weights;
  ReadWeights const r = composed_read(*hard, weights, visibility.offset);
  if (hard->scored) tell(pass, visibility, r.probability, r.entropy);
  return r.read;
}

void Read::tell(Pass const& pass, Visibility const& visibility, Tensor const& probability, Tensor const& entropy) {
  auto const reach = visibility.causal ? HardChoices::Reach::later : HardChoices::Reach::sequence;
  pass.watching.hard_choices->made.push_back({probability, entropy, reach});
}

Tensor PairScore::kinks(Tensor const& query, Tensor const& key) const {
  return corners_ != nullptr ? corners_(unsqueeze(query, 3), unsqueeze(key, 2)) : Tensor();
}

std::optional<FusedScore> PairScore::fused(Tensor const& query, Tensor const&, HeadGroups const&) const {
  FusedScore score{query};
  score.sum = sum_, score.finish = finish_, score.weight = weight_;
  if (parameter_.defined()) score.parameter = unsqueeze(parameter_, 1);
  return score;
}

}  // namespace heed
