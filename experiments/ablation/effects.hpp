#pragma once

#include <string>
#include <vector>

#include "experiments/metric/statistics.hpp"
#include "experiments/report/grid.hpp"

namespace heed {

/// What a value of one key does, averaged over the combinations of the others of which all arms are there; or by how much more it does
/// beside a value of another key.
struct Effect {
  std::string name;  ///< "position: rotary − learned", "position × heads: (rotary − learned) × (2 − 1)"
  bool interaction = false;
  Comparison comparison;  ///< of the effect with none; p is corrected for the number of effects; mean NaN if infinite values leave it open
  std::string sentence;   ///< what it says in words; empty if p is above the significance
  std::size_t averaged = 0, combinations = 0;  ///< over how many combinations of the other keys, of how many
};

/// Whether each effect is averaged over all combinations of the other keys.
bool over_all_combinations(std::vector<Effect> const& effects);

/// The main effects of a grid, and the interactions of each two of its keys, against the values of the arm `baseline` (else the first).
/// `values`: of each arm, by seed; a seed that an arm lacks is left out.
std::vector<Effect> effects_of(Grid const& grid, std::vector<BySeed> const& values, std::size_t baseline, std::string const& unit,
                               Question const& question);

}  // namespace heed
