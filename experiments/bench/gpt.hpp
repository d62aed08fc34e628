#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nn/models/blocks.hpp"
#include "nn/optimizer.hpp"

namespace heed {

/// A GPT and its batch: `context` is the model's, `tokens` the batch's length.
struct GptSize {
  std::string name;
  Index layers, heads, width, context, batch, tokens, vocabulary;
};

/// A GPT on one random batch, with AdamW and clipping: a training step without its data.
class GptSubject {
 public:
  GptSubject(GptSize size, bool recompute);

  /// Forward, backward, gradient norm, clipping and AdamW.
  void train();
  /// "train"; "forward": the loss alone; "sample": generates as many tokens as the batch is long, one by one, with the key-value cache.
  std::function<void()> work(std::string const& name);
  /// Tokens that it reads or writes.
  Index tokens_of(std::string const& name) const { return name == "sample" ? size_.tokens - 1 : size_.batch * size_.tokens; }

 private:
  Tensor loss() const;

  GptSize size_;
  bool recompute_;
  Parameters parameters_;
  std::unique_ptr<Gpt> model_;
  std::unique_ptr<Optimizer> optimizer_;
  Batch batch_;
};

}  // namespace heed
