#include "nn/attention/looking.hpp"

#include <algorithm>
#include <utility>

#include "autograd/ops/shape.hpp"

namespace heed {

Looking::Looking(SingleHead const* attention, std::optional<Projected> const& memory, Tensor lengths, Tensor steps, Pass const& pass)
    : attention_(attention),
      memory_(memory),
      lengths_(std::move(lengths)),
      steps_(std::move(steps)),
      outer_(pass),
      inner_(pass),
      first_choice_(pass.choices != nullptr ? pass.choices->made.size() : 0) {
  if (!pass.watches_attention() && !pass.watches_rows()) return;
  if (pass.watches_attention()) {
    observer_.attention = [this](std::string const&, AttentionView const& view) {
      scores_.push_back(view.scores);
      weights_.push_back(view.weights);
      queries_.push_back(view.query);
    };
  }
  if (pass.watches_rows()) observer_.attention_rows = [this](std::string const&, Tensor const& rows) { rows_.push_back(rows); };
  inner_.observer = &observer_;
}

Visibility Looking::visibility(std::int64_t position) const {
  Visibility sees{.causal = false, .lengths = lengths_, .offset = position};
  if (!steps_.defined()) return sees;
  std::vector<std::int64_t> left;
  for (std::int64_t const steps : steps_.data<std::int64_t>()) left.push_back(std::max<std::int64_t>(steps - position, 0));
  sees.query_lengths = Tensor::of(left, steps_.shape());
  return sees;
}

Tensor Looking::operator()(Tensor const& query, std::int64_t position) {
  Visibility const sees = visibility(position);
  if (query.rank() == 3) return attention_->look(query, *memory_, sees, inner_);
  return squeeze(attention_->look(unsqueeze(query, 1), *memory_, sees, inner_), 1);
}

void Looking::finish(Choices::Reach reach) {
  if (outer_.choices != nullptr && outer_.choices->made.size() > first_choice_) {
    auto& made = outer_.choices->made;
    std::vector<Tensor> probabilities, entropies;
    for (std::size_t i = first_choice_; i < made.size(); ++i) {
      probabilities.push_back(made[i].probability);
      entropies.push_back(made[i].entropy);
    }
    made.resize(first_choice_);
    made.push_back({concatenate(probabilities, 2), concatenate(entropies, 2), reach});
  }
  if (!scores_.empty()) {
    Tensor const scores = concatenate(scores_, 2), weights = concatenate(weights_, 2), query = concatenate(queries_, 1);
    std::span<Tensor const> const steps = scores_.size() > 1 ? std::span<Tensor const>(scores_) : std::span<Tensor const>();
    outer_.observer->attention(attention_->part(), {scores, weights, visibility(0), query, memory_->key, attention_->parts(), steps});
  }
  if (!rows_.empty()) outer_.observer->attention_rows(attention_->part(), concatenate(rows_, 2));
}

}  // namespace heed
