#include "nn/attention/single_head.hpp"

#include <algorithm>
#include <utility>

#include "autograd/graph.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

namespace {

/// What the score compares; for an undeclared score, which Attention refuses, any value.
Compares compares(AttentionSettings const& settings) {
  auto const* const found = Registry<ScoreKind>::find(settings.score);
  return found == nullptr ? Compares::same_width : found->compares;
}

HeadShape head_shape(Compares what, Index width, Index memory, Index context) {
  return {.heads = 1, .width = width, .context = context, .own_key_width = what == Compares::any_widths ? memory : width};
}

}  // namespace

SingleHead::SingleHead(Scope const& scope, AttentionSettings const& settings, Index width, Index memory, Index context,
                       AttentionParts const& parts)
    : part_(scope.path()),
      query_(linear_if(compares(settings) == Compares::projections, scope.at("query"), width, width, false)),
      key_(linear_if(query_ || (compares(settings) == Compares::same_width && memory != width), scope.at("key"), memory, width, false)),
      attention_(scope, settings, head_shape(compares(settings), width, memory, context), 0, nullptr, parts) {}

Projected SingleHead::project(Tensor const& states) const {
  ModelPart const here(part_);
  return {key_ ? (*key_)(states) : states, states};
}

Tensor SingleHead::attend(Tensor const& query, Projected const& memory, Visibility const& visibility, Pass const& pass) const {
  ModelPart const here(part_);
  return attention_(query_ ? (*query_)(query) : query, memory.key, memory.value, visibility, pass);
}

StepwiseAttention::StepwiseAttention(SingleHead const* attention, std::optional<Projected> const& memory, Tensor lengths, Tensor steps,
                                     Pass const& pass)
    : attention_(attention),
      memory_(memory),
      lengths_(std::move(lengths)),
      steps_(std::move(steps)),
      pass_(pass),
      first_choice_(choices_made(pass)) {}

Tensor StepwiseAttention::operator()(Tensor const& query, Index position) {
  Visibility sees{.causal = false, .lengths = lengths_, .offset = position};
  if (steps_.defined()) {
    auto const left = mapped(steps_.data<std::int64_t>(), [&](Index steps) { return std::max<Index>(steps - position, 0); });
    sees.query_lengths = Tensor::of(left, steps_.shape());
  }
  if (query.rank() == 3) return attention_->attend(query, *memory_, sees, pass_);
  return squeeze(attention_->attend(unsqueeze(query, 1), *memory_, sees, pass_), 1);
}

void StepwiseAttention::finish(HardChoices::Reach reach) {
  if (choices_made(pass_) <= first_choice_) return;
  auto& made = pass_.watching.hard_choices->made;
  std::vector<Tensor> probabilities, entropies;
  for (std::size_t i = first_choice_; i < made.size(); ++i) {
    probabilities.push_back(made[i].probability);
    entropies.push_back(made[i].entropy);
  }
  made.resize(first_choice_);
  made.push_back({concatenate(probabilities, 2), concatenate(entropies, 2), reach});
}

}  // namespace heed
