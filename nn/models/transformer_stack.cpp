#include "nn/models/transformer_stack.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "nn/attention/memory.hpp"

namespace heed {

std::vector<Field> StackSettings::fields() {
  return {
      {.name = "layers", .target = &layers, .help = "blocks", .least = 1, .greatest = 1000},
      {.name = "heads", .target = &heads, .help = "attention heads", .least = 1, .greatest = 1000},
      {.name = "width", .target = &width, .help = "of the residual stream", .least = 1, .greatest = 65536},
      {.name = "context", .target = &context, .help = "tokens that it reads at once", .least = 1, .greatest = 1 << 20},
      {.name = "position", .target = &position, .help = "how it knows where a token stands", .words = position_names()},
      {.name = "attention", .target = &attention, .help = "a name, or score, align and read"},
      {.name = "activation", .target = &activation, .help = "of the perceptron", .words = activation_names()},
      {.name = "norm", .target = &norm, .help = "which, and where"},
      {.name = "bias", .target = &bias, .help = "biases in Linear layers"},
      {.name = "tie", .target = &tie, .help = "the head is the token embedding"},
      {.name = "dropout",
       .target = &dropout,
       .help = "on embeddings, attention weights and residual branches",
       .least = 0,
       .greatest = 0.999},
      {.name = "key_width",
       .target = &key_width,
       .help = "of a head's queries and keys; default width / heads",
       .least = 1,
       .greatest = 65536},
      {.name = "value_width", .target = &value_width, .help = "of a head's values; default width / heads", .least = 1, .greatest = 65536},
  };
}

std::optional<std::string> StackSettings::contradiction() {
  if ((!key_width || !value_width) && width % heads != 0)
    return fmt::format("heads: {} heads do not divide the width {} (or give key_width and value_width)", heads, width);
  return std::nullopt;
}

namespace {

/// Each of the 2·layers residual branches starts with this share of the usual spread, so that their sum starts as large as one.
double residual_share(StackSettings const& s) { return 1 / std::sqrt(2 * static_cast<double>(s.layers)); }

MultiHead::Shape head_shape(StackSettings const& s) {
  return {s.width, s.heads, s.key_width.value_or(s.width / s.heads), s.value_width.value_or(s.width / s.heads), s.context};
}

}  // namespace

Block::Block(Scope const& scope, StackSettings const& s, Position const& position)
    : path_(scope.path()),
      pre_(s.norm.place == "pre"),
      dropout_(s.dropout),
      norm1_(scope.at("norm1"), s.width, s.norm.kind),
      attention_(scope.at("attention"), s.attention, head_shape(s), s.bias, s.dropout, residual_share(s), &position),
      norm2_(scope.at("norm2"), s.width, s.norm.kind),
      mlp_(scope.at("mlp"), s.width, 4 * s.width, s.activation, s.bias, residual_share(s)) {}

Tensor Block::operator()(Tensor x, Visibility const& visibility, Pass const& pass, std::size_t layer) const {
  Part const here(path_);
  // x + branch(y), in the branch's last product where nothing comes between.
  auto const added = [&](Tensor const& residual, std::string const& branch, auto const& result) {
    return pass.drops(dropout_) ? residual + pass.dropout(result(Tensor()), dropout_, path_ + branch) : result(residual);
  };
  auto const attend = [&](Tensor const& y) {
    return added(x, ".attention", [&](Tensor const& residual) { return attention_(y, y, visibility, pass, layer, residual); });
  };
  auto const feed = [&](Tensor const& y) { return added(x, ".mlp", [&](Tensor const& residual) { return mlp_(y, pass, residual); }); };
  if (pre_) {
    x = attend(norm1_(x));
    x = feed(norm2_(x));
  } else {
    x = norm1_(attend(x));
    x = norm2_(feed(x));
  }
  if (pass.watches_stream()) pass.observer->stream(path_, x);
  return x;
}

TransformerStack::TransformerStack(Parameters& parameters, StackSettings const& settings, std::int64_t vocabulary, Sees sees)
    : settings_(settings),
      sees_(sees),
      tokens_(Scope(parameters).at("token_embedding"), vocabulary, settings.width),
      position_(make_position(settings.position, Scope(parameters), {settings.context, settings.width, settings.heads})) {
  Scope const root(parameters);
  blocks_.reserve(static_cast<std::size_t>(settings.layers));
  for (std::int64_t i = 0; i < settings.layers; ++i) blocks_.emplace_back(root.at(fmt::format("blocks.{}", i)), settings, *position_);
  if (settings.norm.place == "pre") norm_.emplace(root.at("norm"), settings.width, settings.norm.kind);
  head_ = settings.tie ? tokens_.weight : Embedding(root.at("head"), vocabulary, settings.width).weight;
}

Tensor TransformerStack::logits(Batch const& batch, Pass const& pass) const {
  auto const head = linear_head(batch, pass);
  return linear(head->x, head->weight, head->bias, {}, pass.rounded);
}

std::optional<LinearHead> TransformerStack::linear_head(Batch const& batch, Pass const& pass) const {
  std::int64_t const past = pass.cache != nullptr ? pass.cache->past : 0;
  Visibility visibility{.causal = sees_ == Sees::past, .lengths = {}, .offset = past};
  // Under a causal mask nothing that counts sees the padding, which stands behind it.
  if (!visibility.causal) visibility.lengths = visibility.query_lengths = batch.lengths;

  Tensor x = pass.dropout(position_->embed(tokens_(batch.inputs), past), settings_.dropout, "embedding");
  std::size_t before_last = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (pass.choices != nullptr) before_last = pass.choices->made.size();
    auto const block = [this, i, visibility](Tensor const& in, Pass const& with) { return blocks_[i](in, visibility, with, i); };
    x = pass.recompute ? recomputed(block, x, pass) : block(x, pass);
  }
  // What the last block reads at a place goes into that place's logits and nowhere else.
  if (pass.choices != nullptr) {
    for (auto& made : std::span(pass.choices->made).subspan(before_last)) made.reach = Choices::Reach::place;
  }
  if (norm_) x = (*norm_)(x);
  if (pass.cache != nullptr) pass.cache->past += batch.inputs.size(1);
  return LinearHead{x, head_, {}};
}

double TransformerStack::peak_bytes(PassShape const& shape) const {
  auto const s = head_shape(settings_);
  AttentionBytes const attention = attention_bytes({settings_.attention,
                                                    {s.heads, s.key_width, s.context},
                                                    s.value_width,
                                                    settings_.position,
                                                    sees_ == Sees::past,
                                                    settings_.dropout,
                                                    head_.dtype()},
                                                   shape.batch, shape.tokens, shape.tokens, shape.recorded, shape.trains, shape.watched);
  double const element = static_cast<double>(bytes_of(head_.dtype()));
  double const layers = static_cast<double>(settings_.layers), places = static_cast<double>(shape.batch * shape.tokens);
  // Bytes of an array [B, T, elements]; of a norm's or an activation's result, unless it is so large that backward recomputes it.
  auto const bytes = [&](double elements) { return places * elements * element; };
  auto const result = [&](double elements) { return bytes(elements) < static_cast<double>(recompute_bytes()) ? bytes(elements) : 0; };
  double const width = static_cast<double>(settings_.width), hidden = 4 * width;
  double const projected = bytes(static_cast<double>(settings_.heads * (2 * s.key_width + s.value_width)));
  // Logits and their gradient, as many as are held at once; all of them, and their logarithms, where random choices are scored.
  bool const scores_choices = shape.recorded && shape.trains && estimator() != nullptr;
  double const rows =
      scores_choices ? 2 * places : static_cast<double>(logits_at_once(shape.batch * shape.tokens, vocabulary(), head_.dtype()));
  double const logits = 2 * rows * static_cast<double>(vocabulary()) * element;
  double const attending = attention.peak - attention.kept;
  if (!shape.recorded) {
    double const block = bytes(2 * width) + projected + std::max(attending, bytes(2 * hidden));
    if (!shape.watched) return attention.kept + std::max(block, bytes(width) + logits);
    return layers * attention.kept + std::max({block, bytes(width) + logits, element < 8 ? 2 * attention.kept : 0});
  }
  double const norm = bytes(width) + result(width);  // its input and its result
  // What enters the activation, its result, what swiglu multiplies that with, and the product. The derivative of relu needs its result
  // alone.
  double const perceptron =
      norm + (settings_.activation == "relu" ? bytes(hidden) : (settings_.activation == "swiglu" ? 3 : 1) * bytes(hidden) + result(hidden));
  double const block = norm + projected + attention.kept + perceptron;
  double const kept = (shape.recompute ? bytes(layers * width) + block : layers * block) + norm;
  // Three moments: the loss, and the gradients of the last block's perceptron and, when what that kept is free again, of its attention.
  return kept + std::max({logits, bytes(width + 2 * hidden), bytes(width) + attending - perceptron});
}

double TransformerStack::flops_per_token() const {
  auto const s = head_shape(settings_);
  double const width = static_cast<double>(settings_.width);
  double const projections = 2 * width * static_cast<double>(settings_.heads * (2 * s.key_width + 2 * s.value_width));
  double const feed = 2 * width * 4 * width * (settings_.activation == "swiglu" ? 3 : 2);
  double const seen = static_cast<double>(settings_.context) / (sees_ == Sees::past ? 2 : 1);
  double const attend = 2 * seen * static_cast<double>(settings_.heads * (s.key_width + s.value_width));
  return static_cast<double>(settings_.layers) * (projections + feed + attend) + 2 * width * static_cast<double>(vocabulary());
}

}  // namespace heed
