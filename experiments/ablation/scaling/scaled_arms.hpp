#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/material.hpp"

namespace heed {

/// Prefix of the names of scales d_k^−α, followed by α.
inline constexpr std::string_view power_prefix = "power ";

/// "no scale", "1/√d_k", "d_k^−0.25".
std::string scale_text(std::string const& scale);

/// An arm whose scores are s q·k, with the configuration of its first trial.
struct ScaledArm {
  ArmResult const* arm;
  std::string scale;             ///< the value of the scale's key
  double d_k;                    ///< width of a head's queries and keys
  std::optional<double> factor;  ///< s; nothing if learned
  double spread;                 ///< factor on the initial standard deviation of the query and key projections
  double context;                ///< the most keys that a query can see

  /// α of s = d^−α; nothing if s is learned, or if d = 1 leaves α undetermined.
  std::optional<double> power() const;
  bool starts_as_drawn() const { return spread == 1; }
  std::string name() const { return scale == "learned" ? "learned" : scale_text(scale); }
  /// The same, and whether the query and key projections start smaller or larger: "no scale, smaller start".
  std::string name_with_start() const { return name() + (spread < 1 ? ", smaller start" : spread > 1 ? ", larger start" : ""); }
};

/// The arms for which this is known, in the material's order.
std::vector<ScaledArm> scaled_arms(Material const& material);

/// Their widths d_k, smallest first, and their scales in order.
std::vector<double> widths_of(std::vector<ScaledArm> const& arms);
std::vector<std::string> scales_of(std::vector<ScaledArm> const& arms);

/// The values of a probe by head ("layer0.head1") and step, means over the seeds; heads without a finite one are left out.
std::map<std::string, std::map<double, double>> head_series(ArmResult const& arm, std::string const& probe);

}  // namespace heed
