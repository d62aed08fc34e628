#include "nn/attention/single_head.hpp"

#include <algorithm>

#include "autograd/graph.hpp"

namespace heed {

namespace {

/// Of a score that is declared; Attention refuses another.
Compares compares(AttentionSettings const& settings) {
  auto const* const found = Registry<ScoreKind>::find(settings.score);
  return found == nullptr ? Compares::same_width : found->compares;
}

std::optional<Linear> projection(Scope const& scope, std::int64_t in, std::int64_t out, bool wanted) {
  return wanted ? std::optional<Linear>(std::in_place, scope, in, out, false) : std::nullopt;
}

HeadShape head_shape(Compares what, std::int64_t width, std::int64_t memory, std::int64_t context) {
  return {.heads = 1, .width = width, .context = context, .of_key = what == Compares::any_widths ? memory : width};
}

}  // namespace

SingleHead::SingleHead(Scope const& scope, AttentionSettings const& settings, std::int64_t width, std::int64_t memory, std::int64_t context,
                       AttentionParts const& parts)
    : part_(scope.path()),
      parts_(parts),
      query_(projection(scope.at("query"), width, width, compares(settings) == Compares::projections)),
      key_(projection(scope.at("key"), memory, width, query_ || (compares(settings) == Compares::same_width && memory != width))),
      attention_(scope, settings, head_shape(compares(settings), width, memory, context), 0, nullptr, parts) {}

Projected SingleHead::project(Tensor const& states) const {
  ModelPart const here(part_);
  return {key_ ? (*key_)(states) : states, states};
}

Tensor SingleHead::attend(Tensor const& query, Projected const& memory, Visibility const& visibility, Pass const& pass) const {
  ModelPart const here(part_);
  return attention_(query_ ? (*query_)(query) : query, memory.key, memory.value, visibility, pass);
}

}  // namespace heed
