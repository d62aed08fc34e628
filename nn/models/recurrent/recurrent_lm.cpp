#include "nn/models/recurrent/recurrent_lm.hpp"

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

Declared<ModelKind> const recurrent_lm_model{model_of<RecurrentLm, RecurrentLmSettings>(
    "recurrent_lm", "recurrent language model, predicts the next token (Mikolov et al. 2010)", [](Settings const& settings) {
      auto const& head = dynamic_cast<RecurrentLmSettings const&>(settings).head;
      return head_settings(head).reads({.targets = "next_token", .examples = "delimited"});
    })};

}  // namespace

std::vector<Field> RecurrentLmSettings::fields() {
  return {
      cell_field("recurrent cell of every layer"),
      layers_field("number of recurrent layers"),
      width_field(),
      field(&embedding, "embedding", "width of the token embeddings; default: width").in(1, 65536),
      context_field("tokens of a training sequence, through all of which gradients flow"),
      field(&tie, "tie", "share weights of the output layer and the token embedding (Press & Wolf 2017)"),
      dropout_field(),
      norm_field(),
      field(&head, "head", "output: tokens, or labels of examples"),
  };
}

std::optional<std::string> RecurrentLmSettings::contradiction() {
  if (tie && embedded() != width)
    return fmt::format("tie: an output layer of width {} cannot share weights with an embedding of width {}", width, embedded());
  return std::nullopt;
}

RecurrentLm::RecurrentLm(Parameters& parameters, RecurrentLmSettings const& s, Signature const& data)
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
    throw Error(fmt::format("model.embedding: a head that also reads the embeddings needs them as wide as the states, {}, not {}", s.width,
                            s.embedded()));
}

Outcome RecurrentLm::run(Batch const& batch, Pass const& pass) const {
  Tensor const x = pass.dropout(tokens_(transpose(sequences_of(batch["inputs"]))), settings_.dropout, "token_embedding");
  Tensor const states = permute(cells_(x, {}, {}, pass).outputs, {1, 0, 2});  // padding comes last, so that no token sees it
  Streams streams{{}, lengths_of_sequences(batch)};
  if (head_->reads_layers()) streams.layers.push_back(permute(x, {1, 0, 2}));
  streams.layers.push_back(pass.dropout(states, settings_.dropout, "output"));
  return {head_->predictions(streams, batch, pass)};
}

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

double RecurrentLm::flops_per_token() const {
  return cells_.flops() + (word_weight_.defined() ? 2 * static_cast<double>(settings_.width) * static_cast<double>(vocabulary()) : 0);
}

}  // namespace heed
