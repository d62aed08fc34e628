#pragma once

#include <memory>

#include "experiments/data/tokenizer.hpp"
#include "experiments/data/tokenizers/byte_pairs.hpp"

namespace heed {

/// Byte-pair encoding over bytes, as GPT-2's. <|endoftext|>, or else </s>, ends a text; in a text it is ordinary text.
class BytePairTokenizer : public Tokenizer {
 public:
  explicit BytePairTokenizer(std::shared_ptr<BytePairs const> pairs);

  BytePairs const& pairs() const { return *pairs_; }
  Index vocabulary() const override { return pairs_->size(); }
  std::vector<std::int32_t> encode(std::string_view text) const override { return pairs_->encode(text); }
  std::optional<Index> end() const override { return end_; }
  /// The name of a special token; nothing for others.
  std::optional<std::string> mark(Index token) const override;
  bool slow() const override { return true; }
  /// {"kind": "bpe", "merges": ["Ġ t", …], "tokens": ["!", …]}
  std::string json() const override;

 private:
  std::string text_of(std::vector<Index> const& tokens) const override;

  std::shared_ptr<BytePairs const> pairs_;
  std::optional<Index> end_;
};

}  // namespace heed
