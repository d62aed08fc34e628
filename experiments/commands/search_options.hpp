#pragma once

#include "experiments/program/command.hpp"
#include "nn/decode.hpp"

namespace heed {

/// --weights: which of a run's weights.
inline void add_weights(CLI::App& app, std::string& target) {
  add_word(app, "--weights", target, {"average", "last", "best"},
           "last, best (of the best evaluation; the default with train.keep: best) or average (the running average; otherwise the default "
           "with train.ema)");
}

/// --beam and --length-penalty.
inline void add_beam(CLI::App& app, BeamSettings& beam) {
  add_number<Index>(app, "--beam", beam.width, 1, 1000, "width of beam search (default: 1, greedy decoding)");
  add_number<double>(app, "--length-penalty", beam.length_penalty, 0, 100,
                     "length penalty of beam search; 0: none; a larger one prefers longer texts (default: 0.6)");
}

}  // namespace heed
