#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/data/files.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/pair_batches.hpp"
#include "experiments/data/tokenizer.hpp"

namespace heed {

/// A text and its translation, line by line.
struct ParallelText {
  struct Side {
    std::string path, sha256;
    std::vector<std::string> lines;
  };
  Side source, target;
  std::vector<std::size_t> numbers;  ///< line numbers of the pairs in the files, from 0

  /// A byte-order mark is skipped. Throws FileError naming file and line if a file is missing, a line is empty, not UTF-8 or contains a
  /// mark's name, or the files have different numbers of lines.
  static ParallelText read(std::filesystem::path const& source, std::filesystem::path const& target);
  /// Without the pairs in which a side has more than `longest` words. Throws FileError if none are left.
  ParallelText up_to(Index longest) const;

  /// Throws FileError about a pair's line in a side's file.
  [[noreturn]] void refuse(Side const& side, std::size_t pair, std::string const& message) const;
};

/// `data: {kind: parallel, train: multi30k/tok/train.lc.norm.tok, validation: multi30k/tok/val.lc.norm.tok, from: de, to: en}`
struct ParallelSettings : Settings {
  std::string train, from, to;
  std::optional<std::string> validation, test;
  std::string vocabularies = "joint";
  Index least_count = 2;
  std::optional<Index> longest;
  Index pool = 100;
  std::optional<Index> tokens;

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// The texts of a data set.
struct ParallelTexts {
  ParallelText train;
  std::optional<ParallelText> validation = {}, test = {};
};

/// Sentences and their translations as word tokens (batch_of), each batch as long as its longest sequence. A vocabulary has the words that
/// occur at least `least_count` times in the training text, in both languages together ("joint") or each in its own ("separate"). Training
/// uses the pairs with at most `longest` words per side, in the batches of PairBatches. The signature covers all texts, so that it does not
/// depend on which is held out. N-gram models are of the target language alone: a model's gain over them is what it learns from the source.
class ParallelDataset : public Dataset {
 public:
  /// `held_out`: validation or test. Throws Error if there is no test text, FileError for invalid texts.
  ParallelDataset(ParallelTexts const& texts, ParallelSettings settings, std::uint64_t seed, std::string held_out = "validation");

  /// With `tokens` the number of sequences follows from the lengths, not from `batch`. Throws FileError for a pair longer than the context.
  Batch training(Index index, Index batch, Index context) const override;
  Index validation_batches(Index batch, Index context) const override;
  /// The pairs in the order of the file; the last batch may be smaller.
  Batch validation(Index index, Index batch, Index context) const override;
  /// The line of the held-out target's file.
  Original original(Index row) const override;

  /// A text and its tokenized pairs.
  struct Split {
    ParallelText text;
    std::vector<SequencePair> pairs;
  };

 private:
  void cut_batches(std::uint64_t seed);
  /// `beside`: the text of the split that is not held out; `left_out`: training pairs that were.
  void state(std::optional<ParallelText> const& beside, std::size_t left_out);
  Split encoded(ParallelText text) const;
  static void check_lengths(Split const& split, Index context);

  ParallelSettings settings_;
  std::string held_out_name_;
  Split train_, held_out_;
  std::optional<PairBatches> batches_;
};

}  // namespace heed
