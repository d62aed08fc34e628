#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "autograd/attention/row_statistics.hpp"
#include "experiments/metric/probe/probe.hpp"

namespace heed {

/// What is known of one query's row of attention.
struct AttentionRow {
  std::span<double const> numbers;
  double operator[](RowStatistic which) const { return numbers[static_cast<std::size_t>(which)]; }
};

/// use(row) for every row of a head that sees a key, in all sequences.
void each_row(AttentionRecord const& layer, std::int64_t head, std::function<void(AttentionRow const&)> const& use);
/// How many heads a layer has.
std::int64_t heads_of(AttentionRecord const& layer);

/// Records the mean of f over the rows of every layer's heads as `probe.NAME.layer0.head1`, and with `median` also the median, as
/// `….median`. Rows of no weight at all, and those where f gives nothing, do not count; nothing is recorded of none.
void record_rows(std::vector<AttentionRecord> const& layers, std::string const& name,
                 std::function<std::optional<double>(AttentionRow const&)> const& f, bool median, Row& row);

}  // namespace heed
