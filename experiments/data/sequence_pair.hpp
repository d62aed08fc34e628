#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/data/tokenizer.hpp"
#include "nn/batch.hpp"
#include "nn/signature.hpp"

namespace heed {

/// A source and a target as word tokens, without marks of beginning or end.
struct SequencePair {
  std::vector<std::int32_t> source, target;
};

/// The tokens of a line in a vocabulary of words, without the beginning mark.
std::vector<std::int32_t> tokens_of(Tokenizer const& words, std::string_view line);

/// The text of these word ids in word_tokenizer(), separated by blanks.
std::string text_of(Tokenizer const& words, std::vector<std::int32_t> const& ids);

/// {"chance", …}: the loss of guessing among all words and <eos>.
std::pair<std::string, double> chance(std::vector<std::string> const& words);

/// The signature of batch_of() for these vocabulary sizes and sequences of at most this length (marks included); `joint`: one vocabulary.
Signature pair_signature(Index source, Index target, bool joint, Index longest_source, Index longest_target);

/// A batch for encoder–decoders: source + <eos>, inputs = <bos> + target, targets = target + <eos> (padded with −1). Sequences are padded
/// with <pad> to the longest; source_lengths and lengths count each with its mark.
Batch batch_of(std::span<SequencePair const* const> pairs);

}  // namespace heed
