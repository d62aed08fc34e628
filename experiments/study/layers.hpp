#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace heed {

/// What reaches the weights that make the queries of each layer of a Transformer that has not been trained.
struct LayerGradients {
  std::string place;  ///< of the norms: "pre" or "post"
  std::string scale;  ///< of the scores, as attention's key has it
  std::int64_t d_k = 0;
  std::vector<std::vector<double>> norms;  ///< by layer, ‖∂L/∂W_q‖_F of each draw
};

/// What is drawn: stacks of so many layers with one head, over random tokens.
struct LayerDraws {
  std::int64_t layers = 6, draws = 16;
  static constexpr std::int64_t width = 64, context = 32, rows = 4, vocabulary = 64;
};

/// Of one place, scale and d_k. Each draw has weights of variance 1/width and embeddings of variance 1, so that queries and keys of what is
/// normalised have components of variance 1; targets are random. The draws are the same for every place and scale. Goes on with what
/// an earlier call has left in `part`; an interruption is looked for after a draw: then nothing, and all draws are in that file (an empty
/// path: nowhere). Throws Error if they cannot be.
std::optional<LayerGradients> gradients_of_layers(LayerDraws const& draws, std::string const& place, std::string const& scale,
                                                  std::int64_t d_k, std::uint64_t seed, std::filesystem::path const& part = {});

}  // namespace heed
