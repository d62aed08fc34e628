#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/data/sequence_pair.hpp"
#include "experiments/run/experiment.hpp"
#include "nn/decode.hpp"

namespace heed {

/// Whether a run's model reads a source.
bool reads_source(TrainedModel const& run);

/// A trained model that makes a text of another one, both in words. It keeps the run by reference.
class Translator {
 public:
  /// `path`: of the run, for messages. Throws ConfigError for a model that reads no source and for data that have no texts, FileError for a
  /// damaged run.
  Translator(TrainedModel const& run, std::string path);

  /// A source in tokens, words that the vocabulary does not have as <unk>. Throws Error if the model cannot read so many, and for more than
  /// 4096, or the model's context if that is longer.
  std::vector<std::int32_t> read(std::string_view line) const;
  /// A target in tokens. Throws likewise.
  std::vector<std::int32_t> read_target(std::string_view line) const;
  /// Of every source its hypotheses, the best first (see beam()). Sources of like length go together, but what becomes of one depends on
  /// itself and its number alone; the first has the number `first`. `most`: tokens of a target, as far as the model can read so many; 0:
  /// longest_targets(). Throws FileError for damaged weights.
  std::vector<std::vector<Decoded>> translate(std::span<std::vector<std::int32_t> const> sources, BeamSettings const& settings,
                                              std::int64_t most = 0, std::uint64_t first = 0) const;
  /// A source and its target as the model reads them.
  Batch batch(std::vector<std::int32_t> const& source, std::vector<std::int64_t> const& target) const;
  /// A target's tokens as text.
  std::string text(std::vector<std::int64_t> const& target) const { return target_->decode(target); }

  std::shared_ptr<Tokenizer const> source_words() const { return source_; }
  std::shared_ptr<Tokenizer const> target_words() const { return target_; }

 private:
  std::vector<std::int32_t> checked(std::vector<std::int32_t> tokens) const;

  TrainedModel const& run_;
  std::string path_;
  std::shared_ptr<Tokenizer const> source_, target_;
};

}  // namespace heed
