#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "autograd/index.hpp"
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
std::string with_unit(std::string const& metric, std::string const& unit);
/// With the unit that is declared.
std::string with_unit(std::string const& metric);

/// A metric's name in its parts. As text SPLIT.NAME[.layerL[.headH][.STATISTIC]][.lengthN]: "loss", "validation.ema.loss.length64",
/// "probe.gradients.jacobian_trace.layer0.head1.median".
struct MetricKey {
  std::string split = {};       ///< validation, validation.ema, probe, time, memory; empty: of training steps
  std::string name = {};        ///< loss, attention.entropy
  Index layer = -1, head = -1;  ///< −1: of all
  std::string statistic = {};   ///< of a layer's or a head's values instead of their mean: median
  Index length = -1;            ///< of the sequences, in tokens; −1: as they are

  /// Reads any text: what fits into no other part belongs to the name, so that of(text).text() is the text.
  static MetricKey of(std::string_view text);
  std::string text() const;
  /// "probe.NAME.layerL", or "probe.NAME.layerL.headH".
  static MetricKey of_probe(std::string name, std::size_t layer, Index head = -1);

  bool is_held_out() const { return split == "validation" || is_averaged(); }
  bool is_averaged() const { return split == "validation.ema"; }
  bool is_probe() const { return split == "probe"; }
  /// A time or a memory size, which may differ between equal runs.
  bool is_cost() const { return split == "time" || split == "memory"; }
  bool operator==(MetricKey const&) const = default;
};

}  // namespace heed
