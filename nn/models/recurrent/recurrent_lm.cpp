#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/decode.hpp"
#include "nn/models/recurrent/recurrent.hpp"
#include "nn/models/recurrent/recurrent_settings.hpp"

namespace heed {

namespace {

/// A recurrent language model (Mikolov et al. 2010; Zaremba et al. 2014): cells read a text, and their output predicts the next token. Each
/// sequence of a batch starts from zeros. A head for labelled examples reads the state at a text's last token.
class RecurrentLm : public Model {
 public:
  RecurrentLm(Parameters& parameters, RecurrentLmSettings const& s, Signature const& data)
      : settings_(s),
        tokens_(Scope(parameters).at("token_embedding"), data["inputs"].classes, s.embedded()),
        cells_(Scope(parameters).at("cells"),
               {.cell = s.cell, .in = s.embedded(), .width = s.width, .layers = s.layers, .dropout = s.dropout, .normed = s.normed()}),
        continues_(head_settings(s.head).continues()) {
    HeadSettings const& head = head_settings(s.head);
    if (head.predicts_tokens()) {
      word_weight_ = s.tie ? tokens_.weight : Embedding(Scope(parameters).at("head"), vocabulary(), s.width).weight;
      bias_ = parameters.add("head.bias", {vocabulary()}, Initial::constant(0), WeightDecay::off);
    }
    head_ = head.make({.scope = Scope(parameters).at("heads"),
                       .width = s.width,
                       .layers = 2,
                       .summary_is_first = false,
                       .data = data,
                       .word_weight = word_weight_,
                       .word_bias = bias_});
    if (head_->reads_layers() && s.embedded() != s.width)
      throw Error(fmt::format("model.embedding: a head that also reads the embeddings needs them as wide as the states, {}, not {}",
                              s.width, s.embedded()));
  }

  std::vector<Term> terms() const override { return head_->terms(); }
  Outcome run(Batch const& batch, Pass const& pass) const override {
    Tensor const x = pass.dropout(tokens_(transpose(sequences_of(batch["inputs"]))), settings_.dropout, "token_embedding");
    Tensor const states = permute(cells_(x, {}, {}, pass).outputs, {1, 0, 2});  // padding comes last, so that no token sees it
    Streams streams{{}, lengths_of_sequences(batch)};
    if (head_->reads_layers()) streams.layers.push_back(permute(x, {1, 0, 2}));
    streams.layers.push_back(pass.dropout(states, settings_.dropout, "output"));
    return {head_->predictions(streams, batch, pass)};
  }
  Index context() const override { return settings_.context; }
  Index vocabulary() const override { return tokens_.weight.size(0); }
  Index width() const override { return settings_.width; }
  double flops_per_token() const override {
    return cells_.flops() + (word_weight_.defined() ? 2 * static_cast<double>(settings_.width) * static_cast<double>(vocabulary()) : 0);
  }
  std::unique_ptr<Decoding> decode(Batch const& given, Pass const& pass) const override;

 private:
  class IncrementalDecoding;

  RecurrentLmSettings settings_;
  Embedding tokens_;
  Recurrent cells_;
  Tensor word_weight_, bias_;  ///< of the head over the vocabulary; undefined if the head does not predict tokens
  bool continues_;
  std::unique_ptr<OutputHead> head_;
};

/// Texts that are continued together.
class RecurrentLm::IncrementalDecoding : public StepwiseDecoding {
 public:
  IncrementalDecoding(RecurrentLm const& model, Pass const& pass) : StepwiseDecoding(pass), model_(model) {}

  void restart() override { states_.clear(); }

 private:
  Tensor read(Tensor const& tokens) override {
    auto result = model_.cells_(model_.tokens_(transpose(tokens)), {}, states_, pass_);
    states_ = std::move(result.forward);
    return linear(states_.back()[0], model_.word_weight_, model_.bias_);
  }
  void keep_read(std::span<Index const> rows) override {
    for (States& states : states_) states = chosen_rows(states, rows);
  }

  RecurrentLm const& model_;
  std::vector<States> states_;
};

std::unique_ptr<Decoding> RecurrentLm::decode(Batch const& given, Pass const& pass) const {
  if (!continues_ || !given.parts().empty()) return nullptr;
  return std::make_unique<IncrementalDecoding>(*this, pass);
}

Declared<ModelKind> const recurrent_lm_model{model_of<RecurrentLm, RecurrentLmSettings>(
    "recurrent_lm", "recurrent language model, predicts the next token (Mikolov et al. 2010)", [](Settings const& settings) {
      auto const& head = dynamic_cast<RecurrentLmSettings const&>(settings).head;
      return head_settings(head).reads({.targets = "next_token", .examples = "delimited"});
    })};

}  // namespace

}  // namespace heed
