#include "nn/models/transformer_stack.hpp"

#include <algorithm>
#include <cmath>

#include "autograd/graph.hpp"
#include "autograd/operations/product.hpp"
#include "autograd/rounded_weights.hpp"
#include "nn/decode.hpp"

namespace heed {

namespace {

/// Each of the 2·layers residual branches starts with this share of the usual spread, so that their sum starts as large as one.
double residual_share(StackSettings const& s) { return 1 / std::sqrt(2 * static_cast<double>(s.layers)); }

}  // namespace

TransformerStack::TransformerStack(Parameters& parameters, StackSettings const& settings, std::int64_t vocabulary, Sees sees)
    : settings_(settings),
      sees_(sees),
      tokens_(Scope(parameters).at("token_embedding"), vocabulary, settings.width),
      blocks_(Scope(parameters), settings, sees == Sees::past, residual_share(settings)),
      head_(settings.tie ? tokens_.weight : Embedding(Scope(parameters).at("head"), vocabulary, settings.width).weight) {}

Outcome TransformerStack::run(Batch const& batch, Pass const& pass) const {
  return {{{Term(), {read(batch["inputs"], batch.get("lengths"), pass), head_}}}};
}

Tensor TransformerStack::read(Tensor const& tokens, Tensor const& lengths, Pass const& pass) const {
  Visibility visibility{.causal = sees_ == Sees::past, .lengths = {}, .offset = pass.cache != nullptr ? pass.cache->past : 0};
  // Under a causal mask nothing that counts sees the padding, which stands behind it.
  if (!visibility.causal) visibility.lengths = visibility.query_lengths = lengths;
  Tensor const x = blocks_(blocks_.embedded(tokens_(tokens), pass), visibility, pass);
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
    Tensor const x = model_.read(tokens.rank() == 2 ? tokens : tokens.viewed({tokens.size(0), 1}), {}, pass_);
    return linear(last_place(x), model_.head_, {}, {}, &weights_);
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
  if (sees_ != Sees::past || !given.parts().empty()) return nullptr;
  return std::make_unique<Step>(*this, pass);
}

double TransformerStack::peak_bytes(PassShape const& shape) const {
  StackBytes const stack = blocks_.bytes(shape);
  // Where random choices are scored, the logits are whole.
  bool const whole = shape.recorded && shape.trains && estimator() != nullptr;
  double const logits = head_bytes(shape, settings_.width, vocabulary(), head_.dtype(), whole);
  double const stream = static_cast<double>(shape.batch * shape.tokens * settings_.width) * static_cast<double>(bytes_of(head_.dtype()));
  double const last = shape.recorded ? 0 : stream;
  return stack.kept + stack.open + std::max(stack.moment, last + logits);
}

double TransformerStack::flops_per_token() const {
  return blocks_.flops_per_token() + 2 * static_cast<double>(settings_.width) * static_cast<double>(vocabulary());
}

}  // namespace heed
