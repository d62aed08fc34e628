#include "nn/attention/pair_score.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

template void Registry<ScoreKind>::add(ScoreKind);
template void Registry<AlignKind>::add(AlignKind);

Tensor Score::operator()(Tensor const& query, Tensor const& key) const {
  AttentionForm form{.heads = query.size(1), .visibility = {}};
  AttentionInputs in{merge_heads(query), merge_heads(key)};
  fill(form, in);
  return composed_attention(form, in).scores;
}

Tensor Align::operator()(Tensor const& scores, Tensor const& query, Visibility const& visibility) const {
  AttentionForm form{.heads = scores.size(1), .visibility = visibility};
  AttentionInputs in{merge_heads(query), Tensor({scores.size(0), scores.size(3), 0}, scores.dtype())};  // keys that are only counted
  fill(form, in, in.query);
  return composed_weights(form, in, scores);
}

Tensor Read::operator()(Tensor const& weights, Visibility const& visibility, Pass const& pass, std::string const& layer) const {
  auto const hard = choice(weights.shape(), visibility, pass, layer);
  if (!hard) return weights;
  ReadWeights const r = composed_read(*hard, weights, visibility.offset);
  if (hard->scored) report(pass, visibility, r.probability, r.entropy);
  return r.read;
}

void Read::report(Pass const& pass, Visibility const& visibility, Tensor const& probability, Tensor const& entropy) {
  auto const reach = visibility.causal ? HardChoices::Reach::later : HardChoices::Reach::sequence;
  pass.watching.hard_choices->made.push_back({probability, entropy, reach});
}

Tensor PairScore::kinks(Tensor const& query, Tensor const& key) const {
  return kinks_ != nullptr ? kinks_(unsqueeze(query, 3), unsqueeze(key, 2)) : Tensor();
}

void PairScore::fill(AttentionForm& form, AttentionInputs& in) const {
  form.sum = sum_, form.finish = finish_, in.weight = weight_;
  if (parameter_.defined()) in.parameter = unsqueeze(parameter_, 1);
}

}  // namespace heed
