#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/config/config.hpp"
#include "experiments/metric/statistics.hpp"

namespace heed {

/// What others have reported of an ablation's metric: one number, or numbers by training step. No interval is known of it.
struct Published {
  std::string name;                                    ///< whose it is
  std::vector<std::pair<std::int64_t, double>> curve;  ///< by step, rising; empty for one number
  double value = 0;                                    ///< the number, or that of the last step
};

/// `published: {a tutorial's run: {1000: 22.5, 7000: 95.4}, a paper: 28.1}`. Throws ConfigError at the place of what is wrong.
std::vector<Published> published_of(Document const& file);

/// "soft: 0.9520 [0.9410, 0.9630]; Joey NMT's tutorial reports 0.9540, which lies inside". Nothing of a curve that ends at another step
/// than training does.
std::optional<std::string> beside_published(Published const& published, std::string const& arm, Estimate const& measured,
                                            std::int64_t steps);

}  // namespace heed
