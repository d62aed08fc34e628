#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/index.hpp"

namespace heed {

/// Settings of the draws: stacks of this many one-head layers over random tokens.
struct LayerDraws {
  Index layers = 6, draws = 16;
  static constexpr Index width = 64, context = 32, rows = 4, vocabulary = 64;
};

/// Gradients of the query projections of each layer of an untrained Transformer: by layer, ‖∂L/∂W_q‖_F of each draw. `place`: of the norms,
/// "pre" or "post"; `scale`: of the scores, as in attention's key. Each draw has weights of variance 1/width and embeddings of variance 1,
/// so that queries and keys of normalised inputs have components of variance 1; targets are random. The draws are the same for every
/// placement and scale. Throws as stop_if_interrupted(), after any draw.
std::vector<std::vector<double>> gradients_of_layers(LayerDraws const& draws, std::string const& place, std::string const& scale, Index d_k,
                                                     std::uint64_t seed);

}  // namespace heed
