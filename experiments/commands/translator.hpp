#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/pair_batches.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/decode.hpp"

namespace heed {

/// Whether a run's model reads a source.
bool reads_source(TrainedModel const& run);

/// A trained model from text to text. Keeps a reference to the run.
class Translator {
 public:
  /// Throws ConfigError for a model without a source and for data without text, FileError for a damaged run.
  explicit Translator(TrainedModel const& run);

  /// The tokens of a source, unknown words as <unk>. Throws Error for more tokens than the model can read, and for more than 4096 or, if
  /// that is longer, the model's context.
  std::vector<std::int32_t> read(std::string_view line) const;
  /// The tokens of a target. Throws likewise.
  std::vector<std::int32_t> read_target(std::string_view line) const;
  /// The hypotheses of every source, best first (see beam()). Sources of similar length are batched; a result depends on its source and its
  /// number only, the first source having the number `first`. `max_tokens`: longest target, as far as the model can read it; 0:
  /// longest_targets(). Throws FileError for damaged weights.
  std::vector<std::vector<Decoded>> translate(std::span<std::vector<std::int32_t> const> sources, BeamSettings const& settings,
                                              Index max_tokens = 0, std::uint64_t first = 0) const;
  /// A source and its target as the model reads them.
  Batch batch(std::vector<std::int32_t> const& source, std::vector<Index> const& target) const;
  /// A target's tokens as text.
  std::string text(std::vector<Index> const& target) const { return target_->decode(target); }

  std::shared_ptr<Tokenizer const> source_words() const { return source_; }
  std::shared_ptr<Tokenizer const> target_words() const { return target_; }

 private:
  std::vector<std::int32_t> checked(std::vector<std::int32_t> tokens) const;

  TrainedModel const& run_;
  std::shared_ptr<Tokenizer const> source_, target_;
};

}  // namespace heed
