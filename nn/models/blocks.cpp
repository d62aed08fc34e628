#include "nn/models/blocks.hpp"

#include <span>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/ops/elementwise.hpp"

namespace heed {

std::vector<Field> StackSettings::fields() {
  return {
      {.name = "layers", .target = &layers, .help = "blocks", .least = 1, .greatest = 1000},
      {.name = "heads", .target = &heads, .help = "attention heads", .least = 1, .greatest = 1000},
      {.name = "width", .target = &width, .help = "of the residual stream", .least = 1, .greatest = 65536},
      {.name = "context", .target = &context, .help = "tokens that it reads at once", .least = 1, .greatest = 1 << 20},
      {.name = "key_heads",
       .target = &key_heads,
       .help = "groups of heads that share keys and values (Ainslie et al. 2023); default: as many as heads",
       .least = 1,
       .greatest = 1000},
      {.name = "position", .target = &position, .help = "how it knows where a token stands"},
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
      {.name = "mlp_width",
       .target = &mlp_width,
       .help = "of the perceptron between its two layers; default 4 * width",
       .least = 1,
       .greatest = 1 << 20},
      {.name = "key_width",
       .target = &key_width,
       .help = "of a head's queries and keys; default width / heads",
       .least = 1,
       .greatest = 65536},
      {.name = "value_width", .target = &value_width, .help = "of a head's values; default width / heads", .least = 1, .greatest = 65536},
      {.name = "query_key_spread",
       .target = &query_key_spread,
       .help = "factor on the initial spread of the weights that make queries and keys",
       .least = 0,
       .greatest = 1e6},
  };
}

std::optional<std::string> StackSettings::indivisible(AttentionSettings const& of) const {
  if ((!key_width || !value_width) && width % heads != 0)
    return fmt::format("heads: {} heads do not divide the width {} (or give key_width and value_width)", heads, width);
  if (!key_width && of.differential && width % (2 * heads) != 0)
    return fmt::format("heads: two maps of {} heads do not divide the width {} (or give key_width)", heads, width);
  return std::nullopt;
}

std::optional<std::string> StackSettings::contradiction() {
  if (auto const why = indivisible(attention)) return why;
  if (key_heads && heads % *key_heads != 0) return fmt::format("key_heads: {} groups do not divide {} heads", *key_heads, heads);
  if (!causal && position_kind(position.kind).of_the_past)
    return fmt::format("position: '{}' is of attention to the past alone, and here some places look ahead", position.kind);
  if (std::int64_t const d = head_width(attention); position_kind(position.kind).of_pairs && d % 2 != 0)
    return fmt::format("position: '{}' turns pairs of entries, and a head's queries and keys have an odd number of them, {} ({})",
                       position.kind, d, key_width ? "give an even key_width" : "give an even key_width, or other heads or width");
  if (!causal && attention.forget) return "attention.forget: is of attention to the past alone, and here some places look ahead";
  return std::nullopt;
}

namespace {

MultiHead::Shape head_shape(StackSettings const& s, AttentionSettings const& attention, std::int64_t layer = 0) {
  return {s.width,
          s.heads,
          s.head_width(attention),
          s.value_width.value_or(s.width / s.heads),
          s.context,
          s.key_heads.value_or(s.heads),
          layer,
          s.query_key_spread};
}

/// Where the next token stands.
std::int64_t past(Pass const& pass) { return pass.cache != nullptr ? pass.cache->past : 0; }

}  // namespace

Block::Block(Scope const& scope, StackSettings const& s, Position const& position, double share, AttentionSettings const* cross,
             StreamParts const& parts, std::int64_t layer)
    : path_(scope.path()),
      pre_(s.norm.place == "pre"),
      dropout_(s.dropout),
      norm1_(scope.at("norm1"), s.width, s.norm.kind),
      attention_(scope.at("attention"), s.attention, head_shape(s, s.attention, layer), s.bias, s.dropout, share, &position,
                 {parts.own, parts.own}),
      cross_(cross == nullptr ? std::optional<Cross>()
                              : Cross{Norm(scope.at("norm2"), s.width, s.norm.kind),
                                      MultiHead(scope.at("cross_attention"), *cross, head_shape(s, *cross, layer), s.bias, s.dropout, share,
                                                nullptr, {parts.own, parts.memory})}),
      mlp_norm_(scope.at(cross == nullptr ? "norm2" : "norm3"), s.width, s.norm.kind),
      mlp_(scope.at("mlp"), s.width, s.hidden(), s.activation, s.bias, share) {}

Tensor Block::operator()(Tensor x, Visibility const& visibility, Memory const* memory, Pass const& pass, std::size_t layer) const {
  Part const here(path_);
  // x + branch(y), in the branch's last product where nothing comes between.
  auto const added = [&](Tensor const& residual, std::string const& branch, auto const& result) {
    return pass.drops(dropout_) ? residual + pass.dropout(result(Tensor()), dropout_, path_ + branch) : result(residual);
  };
  auto const around = [&](Norm const& norm, std::string const& branch, auto const& f) {
    auto const result = [&](Tensor const& y) { return added(x, branch, [&](Tensor const& residual) { return f(y, residual); }); };
    x = pre_ ? result(norm(x)) : norm(result(x));
  };
  around(norm1_, ".attention",
         [&](Tensor const& y, Tensor const& residual) { return attention_(y, y, visibility, pass, layer, residual); });
  if (cross_) {
    around(cross_->norm, ".cross_attention", [&](Tensor const& y, Tensor const& residual) {
      return cross_->attention.look(y, projected(*memory, pass, layer), memory->visibility, pass, residual);
    });
  }
  around(mlp_norm_, ".mlp", [&](Tensor const& y, Tensor const& residual) { return mlp_(y, pass, residual); });
  if (pass.watches_stream()) pass.observer->stream(path_, x);
  return x;
}

Projected Block::projected(Memory const& memory, Pass const& pass, std::size_t layer) const {
  auto const made = [&] { return cross_->attention.project(memory.x, 0, pass); };
  if (pass.cache == nullptr) return made();
  auto& kept = pass.cache->layers.at(layer).memory;
  if (!kept) kept = made();
  return *kept;
}

Blocks::Blocks(Scope const& scope, StackSettings const& settings, bool causal, double share, AttentionSettings const* cross,
               StreamParts const& parts)
    : settings_(settings),
      cross_(cross == nullptr ? std::optional<AttentionSettings>() : *cross),
      causal_(causal),
      path_(scope.path()),
      position_(make_position(settings.position, scope, {settings.context, settings.width, settings.heads})) {
  blocks_.reserve(static_cast<std::size_t>(settings.layers));
  for (std::int64_t i = 0; i < settings.layers; ++i)
    blocks_.emplace_back(scope.at(fmt::format("blocks.{}", i)), settings, *position_, share, cross, parts, i);
  if (settings.norm.place == "pre") norm_.emplace(scope.at("norm"), settings.width, settings.norm.kind);
}

Tensor Blocks::embedded(Tensor const& x, Pass const& pass) const {
  return pass.dropout(position_->embed(x, past(pass)), settings_.dropout, path_.empty() ? "embedding" : path_ + ".embedding");
}

Tensor Blocks::operator()(Tensor x, Visibility const& visibility, Pass const& pass, Memory const* memory,
                          std::vector<Tensor>* layers) const {
  if (memory == nullptr && cross_) throw Error(fmt::format("{}: its blocks look at a memory, but there is none", path_));
  std::vector<Choices::Made> no_choices;
  auto& made = pass.choices != nullptr ? pass.choices->made : no_choices;
  std::size_t const first = made.size();
  std::size_t before_last = first;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    before_last = made.size();
    if (layers != nullptr) layers->push_back(x);
    auto const block = [this, i, visibility, sees = memory != nullptr ? memory->visibility : Visibility()](std::vector<Tensor> const& in,
                                                                                                           Pass const& with) {
      if (in.size() == 1) return blocks_[i](in[0], visibility, nullptr, with, i);
      Memory const looked_at{in[1], sees};
      return blocks_[i](in[0], visibility, &looked_at, with, i);
    };
    std::vector<Tensor> const inputs = memory != nullptr ? std::vector{x, memory->x} : std::vector{x};
    x = pass.recompute ? recomputed(block, inputs, pass) : block(inputs, pass);
  }
  // Where the past is all that is seen, a choice touches no place before its own, whatever it looks at. What the last block reads at a
  // place goes into that place alone.
  if (causal_)
    for (auto& each : std::span(made).subspan(first)) each.reach = Choices::Reach::later;
  for (auto& each : std::span(made).subspan(before_last)) each.reach = Choices::Reach::place;
  return norm_ ? (*norm_)(x) : x;
}

double Blocks::flops_per_token() const {
  auto const s = head_shape(settings_, settings_.attention);
  double const width = static_cast<double>(settings_.width), context = static_cast<double>(settings_.context);
  double const projections = 2 * width * static_cast<double>(settings_.heads * (2 * s.key_width + 2 * s.value_width));
  double const feed = 2 * width * static_cast<double>(settings_.hidden()) * (settings_.activation == "swiglu" ? 3 : 2);
  auto const attend = [&](double seen) {
    return projections + 2 * seen * static_cast<double>(settings_.heads * (s.key_width + s.value_width));
  };
  return static_cast<double>(settings_.layers) * (attend(causal_ ? context / 2 : context) + (cross_ ? attend(context) : 0) + feed);
}

}  // namespace heed
