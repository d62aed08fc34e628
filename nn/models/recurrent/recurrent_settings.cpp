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
  if (style == "none" && (is_linear() || !changed().empty()))
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

}  // namespace heed
