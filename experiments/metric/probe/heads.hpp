#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "autograd/attention/row_statistics.hpp"
#include "experiments/metric/probe/probe.hpp"

namespace heed {

/// One query's row of attention.
struct AttentionRow {
  std::span<double const> numbers;
  double operator[](RowStatistic which) const { return at(numbers, which); }
  /// False for a row of linear attention, whose weights come from no scores and have signs: statistics are of their absolute values.
  bool has_scores() const { return !((*this)[RowStatistic::total] > 0 && std::isnan((*this)[RowStatistic::score_mean])); }
};

/// Calls use(row) for every row of a head with a visible key, in all sequences.
void each_row(AttentionRecord const& layer, Index head, std::function<void(AttentionRow const&)> const& use);

/// Records f(layer, head) as `probe.NAME.layer0.head1`; nothing where it gives nothing.
void record_heads(std::vector<AttentionRecord> const& layers, std::string const& name,
                  std::function<std::optional<double>(AttentionRecord const& layer, Index head)> const& f, Row& row);

/// Records the mean of f over the rows of each head as `probe.NAME.layer0.head1` and, with `with_median`, the median as `….median`. Rows
/// whose weights are all 0, and those where f gives nothing, are skipped; nothing is recorded without rows.
void record_rows(std::vector<AttentionRecord> const& layers, std::string const& name,
                 std::function<std::optional<double>(AttentionRow const&)> const& f, bool with_median, Row& row);

}  // namespace heed
