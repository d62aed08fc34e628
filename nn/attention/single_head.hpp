#pragma once

#include <optional>

#include "nn/attention/attention.hpp"

namespace heed {

/// One-head attention from states of one network to those of another (Bahdanau et al. 2015, Luong et al. 2015). Query and keys are the
/// states themselves, or projections `query` and `key` of them if the score needs projections or equal widths that the states do not have;
/// values are the states. Literature on alignment calls them hidden states, literature on memory keys and values.
class SingleHead {
 public:
  /// `width`: of a query; `memory`: width of the states attended to; `context`: the largest number of them; `parts`: as in Attention.
  SingleHead(Scope const& scope, AttentionSettings const& settings, Index width, Index memory, Index context, AttentionParts const& parts);

  /// Keys and values of the states [B, S, memory], shared by all queries.
  Projected project(Tensor const& states) const;
  /// query [B, n, width], the first at visibility.offset → contexts [B, n, memory].
  Tensor attend(Tensor const& query, Projected const& memory, Visibility const& visibility, Pass const& pass) const;

 private:
  std::string part_;
  std::optional<Linear> query_, key_;
  Attention attention_;
};

/// Attention to a memory in successive calls of one pass, for one step or several at a time; to observers and choices they are one layer.
class StepwiseAttention {
 public:
  /// `attention`: null for none. `lengths`: of the memory's sequences; `steps`: of the queries', beyond which no key is visible (int64 [B];
  /// undefined: all).
  StepwiseAttention(SingleHead const* attention, std::optional<Projected> const& memory, Tensor lengths, Tensor steps, Pass const& pass);
  StepwiseAttention(StepwiseAttention const&) = delete;
  StepwiseAttention& operator=(StepwiseAttention const&) = delete;

  /// query [B, width] or [B, n, width], the first at `position` → contexts of the same rank.
  Tensor operator()(Tensor const& query, Index position);
  /// After the last call: reports the choices to the pass. `reach`: the positions that a choice affects.
  void finish(HardChoices::Reach reach);

 private:
  SingleHead const* attention_;
  std::optional<Projected> const& memory_;
  Tensor lengths_, steps_;
  Pass const& pass_;
  std::size_t first_choice_;
};

}  // namespace heed
