#include "nn/models/layer_types.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace heed {

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
