#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/material.hpp"

namespace heed {

/// What names of the scales d_k^−α begin with, before α.
inline constexpr std::string_view power_prefix = "power ";

/// A scale as a reader sees it: "no scale", "1/√d_k", "d_k^−0.25".
std::string said_scale(std::string const& scale);

/// An arm of an ablation whose scores are s q·k, as the configuration of its first trial has it.
struct ScaledArm {
  ArmResult const* arm;
  std::string scale;             ///< of q·k, as its key has it
  double d_k;                    ///< the width of a head's queries and keys
  std::optional<double> factor;  ///< s; nothing if it is learned
  double spread;                 ///< the factor on the initial spread of the weights that make queries and keys
  double context;                ///< the most tokens that a row sees

  /// α of s = d^−α; nothing if it is learned, or where every α is the same.
  std::optional<double> power() const;
  bool starts_as_drawn() const { return spread == 1; }
  std::string said() const { return scale == "learned" ? "learned" : said_scale(scale); }
  /// The same, and whether weights of queries and keys start smaller or larger: "no scale, smaller start".
  std::string said_start() const { return said() + (spread < 1 ? ", smaller start" : spread > 1 ? ", larger start" : ""); }
};

/// The arms of which that is known; their order is the material's.
std::vector<ScaledArm> scaled_arms(Material const& material);

/// The widths d_k that they have, smallest first, and their scales in order.
std::vector<double> widths_of(std::vector<ScaledArm> const& arms);
std::vector<std::string> scales_of(std::vector<ScaledArm> const& arms);

/// The series of a probe by layer and head, "probe.NAME.layer0.head1", for each place its mean over the seeds: (step, value).
struct HeadSeries {
  std::string place;  ///< "layer0.head1"
  std::vector<std::pair<double, double>> points;
};
std::vector<HeadSeries> head_series(ArmResult const& arm, std::string const& probe);

}  // namespace heed
