#include "nn/models/recurrent/recurrent_attention.hpp"

namespace heed {

std::vector<Field> RecurrentAttentionSettings::fields() {
  auto fields = AttentionSettings::fields();
  fields.insert(fields.begin(),
                {.name = "style",
                 .target = &style,
                 .help = "none; bahdanau: s_{t-1} asks, the context enters the cell; luong: s_t asks, the context leaves with it",
                 .words = {"none", "bahdanau", "luong"}});
  return fields;
}

std::optional<std::string> RecurrentAttentionSettings::contradiction() {
  if (style == "none" && tied() != AttentionSettings().tied())
    return "style: none attends to nothing; score, align and read are of the other styles";
  if (auto const key = key_of_many_heads(); !key.empty()) return key + ": is of attention with projections for many heads alone";
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

}  // namespace heed
