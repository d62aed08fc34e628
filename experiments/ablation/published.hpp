#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

/// `published: {a tutorial's run: {1000: 22.5, 7000: 95.4}, a paper: 28.1}`. Throws ConfigError at the place of what is wrong.
std::vector<Published> published_of(Document const& file);

/// "soft: 0.9520 [0.9410, 0.9630]; Joey NMT's tutorial reports 0.9540, which lies inside". Nothing of a curve that ends at another step
/// than training does.
std::optional<std::string> beside_published(Published const& published, std::string const& arm, Estimate const& measured,
                                            std::int64_t steps);

}  // namespace heed
