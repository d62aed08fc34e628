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

/// A number of a head, or of a row; nothing: it has none.
using HeadNumber = std::function<std::optional<double>(AttentionRecord const& layer, Index head)>;
using RowNumber = std::function<std::optional<double>(AttentionRow const&)>;

/// A probe that records f(layer, head) as `probe.METRIC.layer0.head1`; a metric begins with the probe's group.
Probe probe_of_heads(std::string name, std::string const& metric, std::string formula, std::string help, Probe::Input input, HeadNumber f,
                     Bounds bounds = {}, std::optional<std::string> (*unavailable)(Model const&) = nullptr);

/// Records the mean of f over the rows of each head as `probe.METRIC.layer0.head1` and, with `with_median`, the median as `….median`. Rows
/// whose weights are all 0, and those where f gives nothing, are skipped; nothing is recorded without rows.
void record_rows(std::vector<AttentionRecord> const& layers, std::string const& metric, RowNumber const& f, bool with_median, Row& row);
/// A probe that does so.
Probe probe_of_rows(std::string name, std::string const& metric, std::string unit, std::string formula, std::string help, RowNumber f,
                    bool with_median, Bounds bounds = {});

}  // namespace heed
