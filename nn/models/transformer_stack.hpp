#pragma once

#include "nn/heads/head.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

/// `model: {kind: gpt, …}` and `model: {kind: bert, …}`: blocks, and a head.
struct TextStackSettings : StackSettings {
  SeesText sees;  ///< no key
  Choice head;

  explicit TextStackSettings(SeesText how) : sees(how), head(head_choice(how)) {}
  std::vector<Field> fields() override;
};

/// Token embeddings, blocks and a head: by default one over the vocabulary, tied to the embeddings, pre-norm. What a token may see makes
/// the difference between its two kinds: those before it (Gpt), or all (Bert).
class TransformerStack : public Model {
 public:
  /// Whose head predicts tokens.
  TransformerStack(Parameters& parameters, StackSettings const& settings, std::int64_t vocabulary, SeesText sees);
  /// For data that give "segments" [B, T], the number of the text that a token is of, there is an embedding of these too (Devlin et al.
  /// 2019).
  TransformerStack(Parameters& parameters, TextStackSettings const& settings, Signature const& data);

  std::vector<Term> terms() const override { return head_->terms(); }
  Outcome run(Batch const& batch, Pass const& pass) const override;
  std::int64_t context() const override { return settings_.context; }
  std::int64_t vocabulary() const override { return tokens_.weight.size(0); }
  std::int64_t width() const override { return settings_.width; }
  std::optional<std::int64_t> limit() const override { return blocks_.limit(); }
  /// It continues a text where the past never changes, and its head predicts what comes next.
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override;
  EstimatorSettings const* estimator() const override { return settings_.attention.estimator_if_hard(); }
  double flops_per_token() const override;

 private:
  class Step;
  TransformerStack(Parameters& parameters, StackSettings const& settings, HeadSettings const& head, SeesText sees, Signature const& data);

  /// Of tokens [R, T] of these lengths and segments (undefined: all tokens count, there are no segments), the stream [R, T, width] that
  /// leaves the last block; before it come, where `layers` wants them, those that enter and leave the blocks.
  Tensor read(Tensor const& tokens, Tensor const& lengths, Tensor const& segments, Pass const& pass,
              std::vector<Tensor>* layers = nullptr) const;

  StackSettings settings_;
  SeesText sees_;
  Embedding tokens_;
  std::optional<Embedding> segments_;
  Blocks blocks_;
  Tensor word_weight_;  ///< of the head over the vocabulary; undefined where the head predicts no tokens
  bool continues_;
  std::unique_ptr<OutputHead> head_;
};

}  // namespace heed
