#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/data/tokenizer.hpp"

namespace heed {

/// Data of text with one tokenizer.
class TokenizedDataset : public Dataset {
 public:
  /// That of a text: the next token at each position.
  Signature signature() const override {
    return {{.name = "inputs", .classes = tokenizer_->vocabulary()}, {.name = "next", .classes = tokenizer_->vocabulary()}};
  }
  std::shared_ptr<Tokenizer const> tokenizer_handle() const override { return tokenizer_; }

 protected:
  explicit TokenizedDataset(std::shared_ptr<Tokenizer const> tokenizer = nullptr) : tokenizer_(std::move(tokenizer)) {}

  /// The text of these word ids in word_tokenizer(), separated by blanks.
  std::string text_of(std::vector<std::int32_t> const& words) const {
    std::vector<Index> tokens;
    for (Index const word : words) tokens.push_back(word + Tokenizer::marks);
    return tokenizer_->decode(tokens);
  }

  std::shared_ptr<Tokenizer const> tokenizer_;
};

}  // namespace heed
