#pragma once

#include "experiments/run/command.hpp"
#include "nn/decode.hpp"

namespace heed {

/// --weights: which of a run's weights.
void add_weights(CLI::App& app, std::string& target);
/// --beam and --length-penalty.
void add_beam(CLI::App& app, BeamSettings& beam);

}  // namespace heed
