#pragma once

#include <optional>
#include <vector>

#include "nn/attention/single_head.hpp"

namespace heed {

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
