#include "nn/models/recurrent/recurrent_settings.hpp"

#include <utility>

#include "nn/models/recurrent/recurrent.hpp"

namespace heed {

std::vector<Field> RecurrentAttentionSettings::fields() {
  auto fields = AttentionSettings::fields();
  fields.insert(
      fields.begin(),
      field(&style, "style",
            "none; bahdanau: query s_{t-1}, the context enters the cell; luong: query s_t, the context is combined with the cell's output")
          .one_of({"none", "bahdanau", "luong"}));
  return fields;
}

std::optional<std::string> RecurrentAttentionSettings::contradiction() {
  if (style == "none" && tied() != AttentionSettings().tied())
    return "style: none has no attention; score, align and read apply to the other styles";
  if (auto const key = key_of_many_heads(); !key.empty()) return key + ": applies to multi-head attention only";
  return AttentionSettings::contradiction();
}

bool RecurrentAttentionSettings::from_word(std::string_view word) {
  AttentionSettings parts;
  bool const is_style = word == "none" || word == "bahdanau" || word == "luong";
  if (is_style && word != "none") parts.score = word == "bahdanau" ? "additive" : "general";
  if (!is_style && !parts.from_word(word)) return false;
  static_cast<AttentionSettings&>(*this) = parts;
  style = is_style ? std::string(word) : "luong";
  return true;
}

std::vector<std::string> RecurrentAttentionSettings::short_words() {
  auto words = AttentionSettings::short_words();
  words.insert(words.begin(), {"none", "bahdanau", "luong"});
  return words;
}

Field RecurrentSettings::cell_field(std::string help) { return field(&cell, "cell", std::move(help)).one_of(Registry<CellKind>::names()); }
Field RecurrentSettings::layers_field(std::string help) { return field(&layers, "layers", std::move(help)).in(1, 100); }
Field RecurrentSettings::width_field(std::string help) { return field(&width, "width", std::move(help)).in(1, 65536); }
Field RecurrentSettings::context_field(std::string help) { return field(&context, "context", std::move(help)).in(1, 1 << 20); }
Field RecurrentSettings::dropout_field(std::string help) { return field(&dropout, "dropout", std::move(help)).in(0, 0.999); }
Field RecurrentSettings::norm_field() {
  return field(&norm, "norm", "layer: layer norm of the gates' pre-activations (Ba et al. 2016)").one_of({"none", "layer"});
}

Field RecurrentDecoderSettings::embedding_field() { return field(&embedding, "embedding", "width of the word embeddings").in(1, 65536); }
Field RecurrentDecoderSettings::attention_field() {
  return field(&attention, "attention", "none, or a section with style, score, align and read");
}

}  // namespace heed
