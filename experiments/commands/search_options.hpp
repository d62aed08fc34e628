#pragma once

#include "experiments/run/command.hpp"
#include "nn/decode.hpp"

namespace heed {

/// --weights: which of a run's weights.
inline void add_weights(CLI::App& app, std::string& target) {
  add_word(
      app, "--weights", target, {"average", "last", "best"},
      "best: of the best evaluation, the default where train.keep has them; average: the running one, else the default where train.ema "
      "keeps it");
}

/// --beam and --length-penalty.
inline void add_beam(CLI::App& app, BeamSettings& beam) {
  add_number<std::int64_t>(app, "--beam", beam.width, 1, 1000, "hypotheses of beam search (default: 1, the most probable word each time)");
  add_number<double>(app, "--length-penalty", beam.length_penalty, 0, 100,
                     "of beam search: 0 for the most probable text; the more, the longer the texts it prefers (default: 0.6)");
}

}  // namespace heed
