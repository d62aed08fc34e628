#include "nn/models/transformer_stack.hpp"

#include <cmath>

#include "autograd/blas/rounded_weights.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

/// Each of the 2·layers residual branches starts with this share of the usual spread, so that their sum starts as large as one.
double residual_share(StackSettings const& s) { return 1 / std::sqrt(2 * static_cast<double>(s.layers)); }

}  // namespace

std::vector<Field> TextStackSettings::fields() {
  auto all = StackSettings::fields();
  all.push_back({.name = "head", .target = &head, .help = "what it predicts: tokens, or the labels of examples"});
  return all;
}

TransformerStack::TransformerStack(Parameters& parameters, StackSettings const& settings, HeadSettings const& head, SeesText sees,
                                   Signature const& data)
    : settings_(settings),
      sees_(sees),
      tokens_(Scope(parameters).at("token_embedding"), data["inputs"].classes, settings.width),
      segments_(data.has("segments") ? std::optional(Embedding(Scope(parameters).at("segment_embedding"), 2, settings.width))
                                     : std::nullopt),
      blocks_(Scope(parameters), settings, sees == SeesText::past, residual_share(settings)),
      continues_(sees == SeesText::past && head.continues()) {
  if (head.predicts_tokens())
    word_weight_ = settings.tie ? tokens_.weight : Embedding(Scope(parameters).at("head"), data["inputs"].classes, settings.width).weight;
  head_ = head.make({.scope = Scope(parameters).at("heads"),
                     .width = settings.width,
                     .layers = settings.layers + 1,
                     .summary_is_first = sees == SeesText::all,
                     .data = data,
                     .word_weight = word_weight_});
}

TransformerStack::TransformerStack(Parameters& parameters, StackSettings const& settings, std::int64_t vocabulary, SeesText sees)
    : TransformerStack(parameters, settings, head_settings(head_choice(sees)), sees, Signature::tokens(vocabulary)) {}

TransformerStack::TransformerStack(Parameters& parameters, TextStackSettings const& settings, Signature const& data)
    : TransformerStack(parameters, settings, head_settings(settings.head), settings.sees, data) {}

Outcome TransformerStack::run(Batch const& batch, Pass const& pass) const {
  Tensor const segments = batch.get("segments");
  Streams streams{{}, lengths_of_sequences(batch)};
  Tensor const last = read(sequences_of(batch["inputs"]), streams.lengths, segments.defined() ? sequences_of(segments) : segments, pass,
                           head_->reads_layers() ? &streams.layers : nullptr);
  streams.layers.push_back(last);
  return {head_->predictions(streams, batch, pass)};
}

Tensor TransformerStack::read(Tensor const& tokens, Tensor const& lengths, Tensor const& segments, Pass const& pass,
                              std::vector<Tensor>* layers) const {
  Visibility visibility{.causal = sees_ == SeesText::past, .lengths = {}, .offset = pass.cache != nullptr ? pass.cache->past : 0};
  // Under a causal mask nothing that counts sees the padding, which stands behind it.
  if (!visibility.causal) visibility.lengths = visibility.query_lengths = lengths;
  Tensor const words = segments_ && segments.defined() ? tokens_(tokens) + (*segments_)(segments) : tokens_(tokens);
  Tensor const x = blocks_(blocks_.embedded(words, pass), visibility, pass, nullptr, layers);
  if (pass.cache != nullptr) pass.cache->past += tokens.size(1);
  return x;
}

/// Texts that are continued together.
class TransformerStack::Step : public Decoding {
 public:
  Step(TransformerStack const& model, Pass const& pass) : model_(model) {
    pass_.choosing = pass.choosing;
    pass_.sequences = pass.sequences;
    pass_.cache = &cache_;
    pass_.rounded = &weights_;
    restart();
  }

  void restart() override {
    cache_ = {};
    cache_.layers.resize(model_.blocks_.size());
  }

  Tensor scores(Tensor const& tokens) override {
    NoGrad const quiet;
    if (pass_.sequences.empty())
      for (std::int64_t row = 0; row < tokens.size(0); ++row) pass_.sequences.push_back(static_cast<std::uint64_t>(row));
    Tensor const x = model_.read(tokens.rank() == 2 ? tokens : tokens.viewed({tokens.size(0), 1}), {}, {}, pass_);
    return linear(last_place(x), model_.word_weight_, {}, {}, &weights_);
  }

  void keep(std::span<std::int64_t const> rows) override {
    NoGrad const quiet;
    cache_.keep(rows);
    std::vector<std::uint64_t> kept;
    for (std::int64_t const row : rows) kept.push_back(pass_.sequence(row));
    pass_.sequences = std::move(kept);
  }

 private:
  TransformerStack const& model_;
  Pass pass_;
  KeyValueCache cache_;
  RoundedWeights weights_;
};

std::unique_ptr<Decoding> TransformerStack::decode(Batch const& given, Pass const& pass) const {
  if (!continues_ || !given.parts().empty()) return nullptr;
  return std::make_unique<Step>(*this, pass);
}

double TransformerStack::flops_per_token() const {
  return blocks_.flops_per_token() +
         (word_weight_.defined() ? 2 * static_cast<double>(settings_.width) * static_cast<double>(vocabulary()) : 0);
}

}  // namespace heed
