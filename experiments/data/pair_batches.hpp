#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/random.hpp"
#include "experiments/data/tokenizer.hpp"
#include "nn/batch.hpp"

namespace heed {

/// A source and a target as word tokens, without marks of beginning or end.
struct SequencePair {
  std::vector<std::int32_t> source, target;
};

/// The tokens of a line in a vocabulary of words, without the beginning mark.
std::vector<std::int32_t> tokens_of(Tokenizer const& words, std::string_view line);
/// The text of these word ids in word_tokenizer(), separated by blanks.
std::string sentence_of(Tokenizer const& words, std::vector<std::int32_t> const& ids);

/// {"chance", …}: the loss of guessing among all words and <eos>.
std::pair<std::string, double> chance(std::vector<std::string> const& words);

/// The largest size of any batch, padding included: number of sequences times the longest, for each side.
struct PairTokens {
  Index source = 0, target = 0;
};

/// The signature of batch_of() for these vocabulary sizes and sequences of at most this length (marks included); `joint`: one vocabulary.
Signature pair_signature(Index source, Index target, bool joint, Index longest_source, Index longest_target, PairTokens most = {});

/// A batch for encoder–decoders: source + <eos>, inputs = <bos> + target, targets = target + <eos> (padded with −1). Sequences are padded
/// with <pad> to the longest; source_lengths and lengths count each with its mark.
Batch batch_of(std::span<SequencePair const* const> pairs);

/// Batches of pairs for training. An epoch has every pair once, in an order drawn from Stream(seed, "data").child(epoch). A batch's
/// sequences have similar lengths, to limit padding, and batches come in random order.
///
/// By rows: the pairs of `pool` consecutive batches are sorted by length and divided anew; pairs left over at the end of an epoch are
/// dropped. By `tokens`: all pairs are sorted by their longer side and divided so that a batch's rows times its longest side are at most
/// that many. The division is the same in every epoch; pairs of equal length are shuffled.
class PairBatches {
 public:
  /// `pairs`: kept by reference. `tokens`: 0 for batches by rows; else at least the longest side with its mark.
  PairBatches(std::span<SequencePair const> pairs, Index pool, Index tokens, std::uint64_t seed);

  /// Batches per epoch, of `batch` rows if batches are by rows.
  Index per_epoch(Index batch) const;
  /// The pairs of training batch number `index`.
  std::vector<SequencePair const*> rows(Index index, Index batch) const;
  /// Over the batches of any epoch; 0 for batches by rows.
  PairTokens max_tokens() const;

 private:
  using Epoch = std::vector<std::vector<std::int32_t>>;  ///< the numbers of the pairs of each batch
  Epoch by_rows(Stream const& draws, std::size_t rows) const;
  Epoch by_tokens(Stream const& draws) const;

  std::span<SequencePair const> pairs_;
  std::size_t pool_;
  std::uint64_t seed_;
  std::vector<std::size_t> cuts_;  // into the pairs sorted by their longer side, for batches by tokens; the last is the end
  mutable std::mutex drawing_;     // guards the one cached epoch
  mutable std::pair<Index, Index> drawn_{-1, 0};
  mutable Epoch epoch_;
};

}  // namespace heed
