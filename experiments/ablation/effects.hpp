#pragma once

#include <string>
#include <vector>

#include "experiments/report/ablation_result.hpp"

namespace heed {

/// The main effects of a grid, and the interactions of each two of its keys, against the values of the arm `baseline` (else the first).
/// `values`: of each arm, by seed; a seed that an arm lacks is left out.
std::vector<Effect> effects_of(Grid const& grid, std::vector<BySeed> const& values, std::size_t baseline, std::string const& unit,
                               Question const& question);

}  // namespace heed
