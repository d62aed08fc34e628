#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/data/open.hpp"
#include "experiments/data/sequence_pair.hpp"
#include "experiments/data/tokenizer.hpp"

namespace heed {

/// `data: {kind: parallel, train: multi30k/tok/train.lc.norm.tok, validation: multi30k/tok/val.lc.norm.tok, from: de, to: en}`
struct ParallelSettings : Settings {
  std::string train, from, to;
  std::optional<std::string> validation;
  std::string vocabularies = "joint";
  std::int64_t least_count = 2;
  std::int64_t pool = 100;

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// A text and its translation, line by line.
struct ParallelText {
  struct Side {
    std::string path, sha256;
    std::vector<std::string> lines;
  };
  Side source, target;

  /// Throws FileError naming file and line if a file is missing, a line is empty or not UTF-8 or holds a mark's name, or one file has more
  /// lines than the other.
  static ParallelText read(std::filesystem::path const& source, std::filesystem::path const& target);
};

/// Sentences and their translations as rows of words (batch_of), no rows longer than they are: a vocabulary has the words that stand
/// `least_count` times or more in the training text, in both languages together ("joint") or each in its own ("separate").
class ParallelDataset : public Dataset {
 public:
  ParallelDataset(ParallelText const& train, std::optional<ParallelText> const& held_out, ParallelSettings settings, std::uint64_t seed);

  Signature gives() const override;
  /// An epoch is every pair once, in an order drawn from Stream(seed, "data").child(epoch), but for those at its end that fill no batch.
  /// Of `pool` batches in a row the pairs are sorted by length and cut into batches anew, which come in random order: rows of a batch are
  /// of about one length, and little of it is padding. Throws FileError for a pair that is longer than the context.
  Batch training(std::int64_t index, std::int64_t batch, std::int64_t context) const override;
  std::int64_t validation_batches(std::int64_t batch, std::int64_t context) const override;
  /// The pairs in the order of the file; the last batch has those that are left.
  Batch validation(std::int64_t index, std::int64_t batch, std::int64_t context) const override;

  /// Of the language that is translated to.
  std::optional<std::vector<std::int64_t>> encode(std::string const& text) const override;
  std::optional<std::string> decode(std::vector<std::int64_t> const& tokens) const override { return target_words_.decode(tokens); }
  std::string tokenizer() const override { return target_words_.json(); }
  std::string source_tokenizer() const override { return source_words_.json(); }
  nlohmann::json describe() const override;
  /// The n-gram models of the target language alone: what the source is worth is the distance from them.
  std::vector<std::pair<std::string, double>> yardsticks() const override;

 private:
  struct Split {
    std::vector<SequencePair> pairs;
    std::string source_path, target_path, source_sha256, target_sha256;
  };
  Split encoded(ParallelText const& text) const;
  std::vector<std::int32_t> const& order(std::int64_t epoch, std::int64_t batch) const;

  ParallelSettings settings_;
  std::uint64_t seed_;
  Tokenizer source_words_, target_words_;
  Split train_, held_out_;
  mutable std::mutex ordering_;  // the order of one epoch, kept because all of its batches need it
  mutable std::pair<std::int64_t, std::int64_t> ordered_{-1, 0};
  mutable std::vector<std::int32_t> order_;
  mutable std::once_flag counted_;  // the n-grams take a moment and not every command asks for them
  mutable std::vector<double> ngram_losses_;
};

}  // namespace heed
