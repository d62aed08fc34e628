#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "autograd/registry.hpp"

namespace heed {

/// Whether lower or higher values of a metric are better.
enum class Better { lower, higher };
std::string_view name(Better better);

/// The smallest and largest possible values.
struct Bounds {
  double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
};
inline constexpr Bounds fraction{.min = 0, .max = 1};

/// Describes a metric of metrics.jsonl, declared beside the code that writes it; used by plans, verdicts, tuning, tables and figures.
struct MetricInfo {
  std::string name;              ///< * stands for any text: validation.accuracy.*, probe.attention.entropy.layer*.head*
  std::string unit;              ///< nat, s, B, …; empty: a plain number, or a fraction
  std::optional<Better> better;  ///< nothing: neither direction is better
  std::string help;
  Bounds bounds = {};  ///< of its values: 0 and 1 for a fraction
};
extern template void Registry<MetricInfo>::add(MetricInfo);  // compiled once

/// The declaration that matches a metric's name with the fewest characters left to a *; null if there is none.
MetricInfo const* find_metric(std::string_view name);

/// The bounds of a metric's values; none if it is not declared.
Bounds bounds_of(std::string_view metric);

/// "validation.loss (nat)"; the name alone if there is no unit.
std::string with_unit(std::string const& metric);

}  // namespace heed
