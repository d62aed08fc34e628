#pragma once

#include <optional>
#include <vector>

#include "nn/attention/attention.hpp"

namespace heed {

/// Attention of one head from states of one network to those of another (Bahdanau et al. 2015, Luong et al. 2015). The query and the keys
/// are the states, or what `query` and `key` make of them where the score wants projections, or one width, which they have not; the values
/// are the states. In the words of the two views of the literature: by alignment, a query and the hidden states that it is compared with;
/// by memory, queries, keys and values.
class SingleHead {
 public:
  /// `width`: of a query; `memory`: of the states that it attends to; `context`: the most of them; `parts`: as Attention's.
  SingleHead(Scope const& scope, AttentionSettings const& settings, std::int64_t width, std::int64_t memory, std::int64_t context,
             AttentionParts const& parts);

  /// What looks of any number share: keys and values of the states [B, S, memory].
  Projected project(Tensor const& states) const;
  /// query [B, n, width], the first at visibility.offset → contexts [B, n, memory].
  Tensor attend(Tensor const& query, Projected const& memory, Visibility const& visibility, Pass const& pass) const;

  std::string const& part() const { return part_; }
  AttentionParts const& parts() const { return parts_; }

 private:
  std::string part_;
  AttentionParts parts_;
  std::optional<Linear> query_, key_;
  Attention attention_;
};

/// The looks of one pass at a memory, one step after the other or several steps at once, in order. Who is told what hard attention chooses
/// sees them as one layer.
class StepwiseAttention {
 public:
  /// `attention`: null, if nothing will look. `lengths`: places of each row of the memory; `steps`: of each row of those who look, which
  /// see nothing behind them (int64 [B]; undefined: all).
  StepwiseAttention(SingleHead const* attention, std::optional<Projected> const& memory, Tensor lengths, Tensor steps, Pass const& pass);
  StepwiseAttention(StepwiseAttention const&) = delete;
  StepwiseAttention& operator=(StepwiseAttention const&) = delete;

  /// query [B, width] or [B, n, width], the first at `position` → contexts, likewise.
  Tensor operator()(Tensor const& query, std::int64_t position);
  /// After the last: tells the pass's choices. `reach`: of a choice.
  void finish(HardChoices::Reach reach);

 private:
  Visibility visibility(std::int64_t position) const;

  SingleHead const* attention_;
  std::optional<Projected> const& memory_;
  Tensor lengths_, steps_;
  Pass const& pass_;
  std::size_t first_choice_;
};

}  // namespace heed
