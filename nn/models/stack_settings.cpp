// Settings of all Transformers: model: {kind: gpt, layers: 4, …}

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "nn/models/blocks.hpp"

namespace heed {

std::vector<Field> StackSettings::fields() {
  std::vector<Field> const all{
      field(&layers, "layers", "blocks").in(1, 1000),
      field(&heads, "heads", "number of attention heads").in(1, 1000),
      field(&width, "width", "width of the residual stream").in(1, 65536),
      field(&context, "context", "longest sequence in tokens").in(1, 1 << 20),
      field(&key_heads, "key_heads",
            "number of heads of keys and values, each shared by a group of query heads (Ainslie et al. 2023); default: heads")
          .in(1, 1000),
      field(&position, "position", "positional encoding"),
      field(&attention, "attention", "a variant's name, or a section with score, align and read"),
      field(&activation, "activation", "activation function of the MLP").one_of(activation_names()),
      field(&norm, "norm", "normalisation: kind and place"),
      field(&bias, "bias", "biases in linear layers"),
      field(&tie, "tie", "share weights of the output layer and the token embedding"),
      field(&dropout, "dropout", "dropout on embeddings, attention weights and residual branches").in(0, 0.999),
      field(&mlp_width, "mlp_width", "hidden width of the MLP; default: 4 * width").in(1, 1 << 20),
      field(&key_width, "key_width", "width of a head's queries and keys; default: width / heads").in(1, 65536),
      field(&value_width, "value_width", "width of a head's values; default: width / heads").in(1, 65536),
      field(&query_key_spread, "query_key_spread", "factor on the initial standard deviation of W_q and W_k").in(0, 1e6),
      field(&sees, "sees", "the last tokens that a token attends to, itself included (a sliding window); 0: all").in(0, 1 << 20),
  };
  return extended(all, pattern.fields());
}

StackSettings StackSettings::of_layer(Index layer) const {
  StackSettings s = *this;
  s.pattern = {};
  LayerSettings const* const own = pattern.of_layer(layer, layers).settings;
  if (own == nullptr) return s;
  if (!own->attention.is_same()) s.attention = own->attention;
  if (!own->position.kind.empty()) s.position = own->position;
  if (s.attention.is_linear()) s.key_heads.reset(), s.sees = 0;
  if (own->key_heads) s.key_heads = own->key_heads;
  if (own->mlp_width) s.mlp_width = own->mlp_width;
  if (own->sees) s.sees = *own->sees;
  return s;
}

StackSettings StackSettings::of_base() const {
  StackSettings s = *this;
  s.width = parametrization.base.value();
  s.parametrization = {};
  return s;
}

EstimatorSettings const* StackSettings::estimator() const {
  for (Index i = 0; i < layers; ++i) {
    LayerSettings const* const own = pattern.of_layer(i, layers).settings;
    AttentionSettings const& of_layer = own != nullptr && !own->attention.is_same() ? own->attention : attention;
    if (auto const* const hard = of_layer.estimator_if_hard()) return hard;
  }
  return nullptr;
}

std::vector<Field> TextStackSettings::fields() {
  return extended(StackSettings::fields(), {field(&head, "head", "output: tokens, or labels of examples"),
                                            field(&parametrization, "parametrization",
                                                  "how initial weights, learning rates, scores and logits depend on the width")});
}

std::optional<std::string> TextStackSettings::contradiction() {
  if (auto const why = StackSettings::contradiction(); why || !parametrization.base) return why;
  if (head.kind != "language_model") return fmt::format("head: mup has a rule for logits of tokens only, not for the head '{}'", head.kind);
  auto const why = of_base().contradiction();
  return why ? std::optional(fmt::format("parametrization.base: {} in the model of width {}", *why, *parametrization.base)) : std::nullopt;
}

MultiHead::Dimensions StackSettings::shape_of(AttentionSettings const& of, Index layer) const {
  Index const usual = width / heads;
  Index const d_k = key_width.value_or(of.differential ? usual / 2 : usual), d_v = value_width.value_or(usual);
  double const scale_factor = key_width ? 1 : std::sqrt(parametrization.growth(width));
  return {width, heads, d_k, d_v, context, key_heads.value_or(heads), layer, query_key_spread, sees, scale_factor};
}

std::optional<std::string> StackSettings::head_width_error(AttentionSettings const& of) const {
  if ((!key_width || !value_width) && width % heads != 0)
    return fmt::format("heads: {} heads do not divide the width {} (or give key_width and value_width)", heads, width);
  if (!key_width && of.differential && width % (2 * heads) != 0)
    return fmt::format("heads: two maps of {} heads do not divide the width {} (or give key_width)", heads, width);
  return std::nullopt;
}

std::optional<std::string> StackSettings::layer_contradiction() const {
  if (auto const why = head_width_error(attention)) return why;
  if (key_heads && heads % *key_heads != 0) return fmt::format("key_heads: {} groups do not divide {} heads", *key_heads, heads);
  PositionKind const& kind = position_kind(position.kind);
  if (!causal && kind.of_the_past) return fmt::format("position: '{}' needs causal attention, and this attention is not", kind.name);
  if (Index const d = shape_of(attention, 0).key_width; kind.acts_on == PositionActsOn::queries_and_keys && d % 2 != 0)
    return fmt::format("position: '{}' rotates pairs of entries, but a head's queries and keys have an odd number, {} ({})", kind.name, d,
                       key_width ? "give an even key_width" : "give an even key_width, or other heads or width");
  if (auto const why = parametrization.unavailable(attention)) return "attention." + *why;
  if (parametrization.base && kind.acts_on == PositionActsOn::scores)
    return fmt::format("position: mup has no rule for '{}', which is added to scores", kind.name);
  if (!causal && attention.forget) return "attention.forget: needs causal attention, and this attention is not";
  if (!attention.is_linear()) return std::nullopt;
  if (kind.acts_on == PositionActsOn::scores)
    return fmt::format("position: '{}' is added to scores, of which linear attention has none", kind.name);
  if (key_heads) return "key_heads: heads of linear attention have values of their own; queries and keys are shared by attention.groups";
  if (sees > 0) return "sees: linear attention reads a state, without a window";
  if (Index const groups = attention.of_linear.groups.value_or(heads); heads % groups != 0)
    return fmt::format("attention.groups: {} groups do not divide {} heads", groups, heads);
  return std::nullopt;
}

std::optional<std::string> StackSettings::contradiction() {
  if (auto const why = pattern.contradiction(layers)) return why;
  auto const* const first = estimator();
  for (Index i = 0; i < layers; ++i) {
    auto const [own, key] = pattern.of_layer(i, layers);
    StackSettings const layer = of_layer(i);
    if (auto const* const hard = layer.attention.estimator_if_hard(); hard != nullptr && !(*hard == *first))
      return (key.empty() ? "attention" : key) + ": its estimator differs from another layer's; a model has one estimator";
    auto const why = layer.layer_contradiction();
    if (!why) continue;
    auto const keys = own != nullptr ? own->own_keys() : std::vector<std::string>();
    bool const of_layer_alone = std::ranges::find(keys, why->substr(0, why->find_first_of(".:"))) != keys.end();
    return of_layer_alone ? key + "." + *why : *why;
  }
  return std::nullopt;
}

double StackSettings::layer_flops(double seen) const {
  auto const s = shape_of(attention, 0);
  double const mlp = 2 * to_double(width) * to_double(hidden()) * (activation == "swiglu" ? 3 : 2);
  double const pairs = to_double(s.heads * (s.key_width + s.value_width));
  if (!attention.is_linear()) return 4 * to_double(width) * pairs + 2 * (sees > 0 ? std::min(seen, to_double(sees)) : seen) * pairs + mlp;
  LinearSettings const& linear = attention.of_linear;
  double const keys = to_double(linear.groups.value_or(heads) * s.key_width), values = to_double(s.heads * s.value_width);
  double const projections =
      to_double(1 + linear.steps) * keys + to_double(1 + linear.steps + (linear.output_gate != "none" ? 1 : 0)) * values;
  double const of_state = 2 * to_double(s.heads * s.key_width * s.value_width);  // read, write, and erase
  return 2 * to_double(width) * projections + of_state * to_double(1 + linear.steps * (linear.write == "delta" ? 2 : 1)) + mlp;
}

Index StackSettings::cached_numbers() const {
  auto const s = shape_of(attention, 0);
  if (!attention.is_linear())
    return s.key_heads * ((attention.differential ? 2 : 1) * s.key_width + s.value_width) + (attention.forget ? heads : 0);
  LinearSettings const& linear = attention.of_linear;
  Index const keys = linear.groups.value_or(heads) * s.key_width,
              convolved = (1 + linear.steps) * keys + linear.steps * s.heads * s.value_width;
  return s.heads * s.key_width * (s.value_width + (linear.normaliser == "sum" ? 1 : 0)) +
         (attention.convolution.value_or(1) - 1) * convolved;
}

std::vector<Field> OwnAttentionSettings::fields() {
  auto fields = AttentionSettings::fields();
  Field& score_field = *std::ranges::find(fields, "score", &Field::name);
  score_field.words.insert(score_field.words.begin(), "same");
  score_field.help += "; same: all settings of the model's attention";
  return fields;
}

std::optional<std::string> OwnAttentionSettings::contradiction() {
  AttentionSettings given = *this;
  if (score == "same") given.score = AttentionSettings().score;  // of which linear attention has none
  if (score == "same" && !is_linear() && !given.changed().empty())
    return "score: attention with settings of its own needs a score of its own, not 'same'";
  return given.contradiction();
}

bool OwnAttentionSettings::from_word(std::string_view word) {
  *this = {};
  return word == "same" || AttentionSettings::from_word(word);
}

std::vector<std::string> OwnAttentionSettings::short_words() {
  auto words = AttentionSettings::short_words();
  words.insert(words.begin(), "same");
  return words;
}

std::vector<std::string> LayerSettings::own_keys() const {
  std::vector<std::string> keys;
  if (!attention.is_same()) keys.emplace_back("attention");
  if (!position.kind.empty()) keys.emplace_back("position");
  if (key_heads) keys.emplace_back("key_heads");
  if (mlp_width) keys.emplace_back("mlp_width");
  if (sees) keys.emplace_back("sees");
  return keys;
}

bool LayerSettings::given() const { return !type.empty() || !own_keys().empty(); }

std::vector<Field> LayerSettings::fields() {
  return {field(&attention, "attention", "attention of the layer; same: the model's"),
          field(&position, "position", "positional encoding inside its attention; none given: the model's"),
          field(&key_heads, "key_heads", "heads of its keys and values; none: the model's").in(1, 1000),
          field(&mlp_width, "mlp_width", "hidden width of its MLP; none: the model's").in(1, 1 << 20),
          field(&sees, "sees", "the last tokens that a token attends to, itself included; 0: all; none: the model's").in(0, 1 << 20)};
}

std::optional<std::string> LayerSettings::contradiction() {
  if (!position.kind.empty() && position_kind(position.kind).acts_on == PositionActsOn::embeddings)
    return fmt::format("position: '{}' is added to the embeddings, before all layers: give it as model.position", position.kind);
  return std::nullopt;
}

bool LayerSettings::from_word(std::string_view word) {
  OwnAttentionSettings of_word;
  bool const section = types != nullptr && types->find(word) != nullptr;
  if (!section && !of_word.from_word(word)) return false;
  if (!section) attention = of_word;
  type = word;
  return true;
}

std::vector<std::string> LayerSettings::short_words() {
  auto words = types != nullptr ? types->names() : std::vector<std::string>();
  std::ranges::copy(attention.short_words(), std::back_inserter(words));
  return words;
}

std::vector<Field> LayerPattern::fields() {
  list.types = last.types = &types;
  return {field(&types, "types", "named sections for layer_types and last_layer"),  // first: the others use the names
          field(&list, "layer_types",
                "the layers' attentions, repeated: names of attentions or of `types`, or sections with attention, position, key_heads, "
                "mlp_width and sees"),
          field(&last, "last_layer", "the last layer, if it differs: as an item of layer_types")};
}

LayerPattern::Found LayerPattern::of_layer(Index layer, Index layers) const {
  bool const is_last = layer == layers - 1 && last.given();
  if (!is_last && list.items.empty()) return {nullptr, ""};
  Index const item = is_last ? 0 : layer % std::ssize(list.items);
  LayerSettings const& own = is_last ? last : heed::at(list.items, item);
  if (auto const* const named = types.find(own.type)) return {named, "types." + own.type};
  return {&own, is_last ? "last_layer" : fmt::format("layer_types.{}", item)};
}

std::string LayerPattern::name_of(Index layer, Index layers) const {
  auto const found = of_layer(layer, layers);
  if (found.settings == nullptr) return "";
  if (found.key.starts_with("types.")) return found.key.substr(std::string_view("types.").size());
  if (!found.settings->type.empty()) return found.settings->type;
  auto const& attention = found.settings->attention;
  return attention.is_linear() ? attention.linear.name : attention.is_same() ? "" : attention.score;
}

std::optional<std::string> LayerPattern::contradiction(Index layers) const {
  auto const attentions = AttentionSettings().short_words();
  for (auto const& name : types.names())
    if (std::ranges::find(attentions, name) != attentions.end())
      return fmt::format("types.{}: is the name of an attention: layer_types would not know which is meant", name);
  // One layer may follow the last repetition: last_layer, or the first type again (local, global, local).
  Index const length = std::ssize(list.items);
  if (length > 0 && layers % length != 0 && (layers - 1) % length != 0)
    return fmt::format("layer_types: {} types do not divide {} layers, nor {} and one that ends them", length, layers, layers - 1);
  return std::nullopt;
}

}  // namespace heed
