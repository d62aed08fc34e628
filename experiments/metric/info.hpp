#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/registry.hpp"

namespace heed {

/// Which of two values of a metric is the better one.
enum class Better { lower, higher };
std::string_view name(Better better);

/// The least and the greatest value that there can be.
struct Bounds {
  double least = -std::numeric_limits<double>::infinity(), greatest = std::numeric_limits<double>::infinity();
};

/// What a metric of metrics.jsonl says of itself. Who writes it declares it, beside the code that does: plans, verdicts, tuning, tables and
/// figures ask here.
struct MetricInfo {
  std::string name;              ///< a * in it stands for any text: validation.accuracy.*, probe.attention.entropy.layer*.head*
  std::string unit;              ///< nat, s, B, …; empty: a plain number, or a share
  std::optional<Better> better;  ///< nothing: neither is
  std::string help;
  Bounds bounds = {};  ///< of its values: 0 and 1 of a share
};

/// The declaration that a metric's name fits, with the fewest letters left to a *; null if there is none.
MetricInfo const* find_metric(std::string_view name);

/// The bounds of a metric's values; none of one that is not declared.
Bounds bounds_of(std::string_view metric);

/// "validation.loss.length64": a metric in rows of so many tokens (train.evaluate.lengths).
std::string name_at_length(std::string const& metric, std::int64_t length);
/// The length of a name of this kind; nothing for another one, and for that of another metric.
std::optional<std::int64_t> length_of_name(std::string_view name, std::string_view metric);

/// "validation.loss (nat)"; the name alone without a unit.
std::string with_unit(std::string const& metric);

}  // namespace heed
