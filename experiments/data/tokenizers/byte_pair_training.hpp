#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "experiments/data/tokenizers/byte_pairs.hpp"

namespace heed {

/// The token that ends a text in vocabularies that are trained here, GPT-2's.
constexpr std::string_view end_of_text = "<|endoftext|>";
/// The smallest vocabulary: the 256 bytes and that token.
constexpr std::int64_t least_byte_pairs = 257;

/// A vocabulary of `size` tokens, learnt from a text (Sennrich et al. 2016, algorithm 1; of pretokens of bytes, Radford et al. 2019): the
/// 256 bytes, then again and again the two neighbouring tokens within pretokens that stand beside each other most often, at last the token
/// that ends a text. Of pairs that stand equally often, the one whose left token has the lower number is merged first, then the one whose
/// right token has. A pair that stands once is not merged: of a short text the vocabulary is smaller. `told` hears how many tokens there
/// are.
std::shared_ptr<BytePairs const> train_byte_pairs(std::string_view text, std::int64_t size,
                                                  std::function<void(std::int64_t)> const& told = {});

}  // namespace heed
