#pragma once

#include <functional>
#include <span>
#include <vector>

#include "autograd/random.hpp"
#include "nn/decode.hpp"

namespace heed {

/// Reads tokens one by one, each once: keeps the keys and values of earlier ones and, where products are made in bfloat16, the rounded
/// weights.
///
/// Beyond the model's context, only the last tokens are seen. If positions extend beyond the context (no limit()), the window may exceed it
/// by an eighth, so that the cache, which must be rebuilt when its first token moves, is rebuilt only once per context/8 tokens; with a
/// limit (learned positions) the window is exactly the last `context` tokens, rebuilt for every token. The window depends on the number of
/// tokens read alone, not on how many were read at once.
class Decoder {
 public:
  /// The model must outlive it, unchanged. Throws Error for a model that does not generate text step by step.
  explicit Decoder(Model const& model);

  /// Reads at least one token; returns the scores of the next, [V]. Throws Error naming a token outside the vocabulary.
  Tensor read(std::span<Index const> tokens);

  /// The number of tokens in the window: at least `context` if that many were read.
  Index seen() const { return static_cast<Index>(tokens_.size()) - first_; }

 private:
  Index first_seen() const;

  Model const& model_;
  Index slack_;                // positions beyond the context
  std::vector<Index> tokens_;  // all tokens read
  Index first_ = 0;            // index of the first token in the window
  std::unique_ptr<Decoding> decoding_;
};

/// How a token is drawn from scores.
struct SamplingSettings {
  double temperature = 1;  ///< divides the scores; 0: greedy
  Index top_k = 0;         ///< only the k most probable (Fan et al. 2018); 0: all
  double top_p = 1;        ///< of those, only the smallest set with this share of their probability (nucleus; Holtzman et al. 2020)
  Index tokens = 0;        ///< only tokens below this one: the others have rows of embeddings, but no text; 0: all
};

/// A token and its probability.
struct TokenCandidate {
  Index token;
  double probability;
};

/// The tokens that can be drawn, most probable first (ties by the lower id), with probabilities that sum to one: softmax(scores /
/// temperature) in float64, cut by top_k, then by top_p. Throws Error for settings out of range, NonFinite if a score is NaN or the largest
/// is infinite.
std::vector<TokenCandidate> candidates(std::span<double const> scores, SamplingSettings const& settings);

/// The candidate at which the running sum of the probabilities exceeds u in [0, 1).
Index draw_token(std::vector<TokenCandidate> const& candidates, double u);

/// Continues a prompt by up to `count` tokens, the i-th drawn with draw i of the stream; calls `emit` with each, and stops when it returns
/// false. Records nothing. Throws Error for an empty prompt or a token outside the vocabulary.
void generate(Model const& model, std::span<Index const> prompt, Index count, SamplingSettings const& settings, Stream const& stream,
              std::function<bool(Index)> const& emit);

}  // namespace heed
