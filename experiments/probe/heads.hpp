#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "experiments/probe/probe.hpp"

namespace heed {

/// One query's row of attention, over the keys that it may see.
struct AttentionRow {
  std::int64_t position;  ///< of the query
  std::span<double const> scores, weights;
  std::span<double const> shares;  ///< p_j = a_j / Σ_j a_j: the weights themselves where they sum to one
};

/// Records the mean of f over the rows of every layer's heads as `probe.NAME.layer0.head1`, and with `median` also the median, as
/// `….median`. Rows of no weight at all (they see no key), and those where f gives nothing, do not count; nothing is recorded of none.
void record_rows(Sight const& sight, std::string const& name, std::function<std::optional<double>(AttentionRow const&)> const& f,
                 bool median, Row& row);

}  // namespace heed
