#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "experiments/data/tokenizer.hpp"
#include "nn/batch.hpp"
#include "nn/signature.hpp"

namespace heed {

/// Two sequences of words' tokens, of which the second is to be made of the first; neither has marks of its beginning or end.
struct SequencePair {
  std::vector<std::int32_t> source, target;
};

/// The words of a line, in a vocabulary of words, without the mark of their beginning.
std::vector<std::int32_t> tokens_of(Tokenizer const& words, std::string_view line);

/// What batch_of() gives of so many tokens, in rows of so many places at most (marks included); `joint`: of one vocabulary.
Signature pair_signature(std::int64_t source, std::int64_t target, bool joint, std::int64_t longest_source, std::int64_t longest_target);

/// The rows of an encoder–decoder: source + <eos>, inputs = <bos> + target, targets = target + <eos> (−1 behind). Rows are as long as the
/// longest of them, filled up with <pad>; source_lengths and lengths say how long each is, its mark included.
Batch batch_of(std::span<SequencePair const* const> pairs);

}  // namespace heed
