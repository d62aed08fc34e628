#include <algorithm>

#include <fmt/format.h>

#include "nn/models/recurrent_seq2seq.hpp"

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
  AttentionSettings const usual;
  bool const untouched = score == usual.score && scale == usual.scale && align == usual.align && window == usual.window &&
                         windowed == usual.windowed && read == usual.read && estimator == usual.estimator;
  if (style == "none" && !untouched) return "style: none attends to nothing; score, align and read are of the other styles";
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

double RecurrentSeq2seqSettings::own_words(std::int64_t step) const {
  if (scheduled_sampling_steps == 0) return scheduled_sampling;
  return scheduled_sampling * std::min(1.0, static_cast<double>(step) / static_cast<double>(scheduled_sampling_steps));
}

std::vector<Field> RecurrentSeq2seqSettings::fields() {
  return {
      {.name = "cell", .target = &cell, .help = "of encoder and decoder", .words = cell_names()},
      {.name = "layers", .target = &layers, .help = "of cells, in the encoder and in the decoder", .least = 1, .greatest = 100},
      {.name = "width", .target = &width, .help = "of a cell's state", .least = 1, .greatest = 65536},
      {.name = "embedding", .target = &embedding, .help = "width of the words' vectors", .least = 1, .greatest = 65536},
      {.name = "context",
       .target = &context,
       .help = "tokens of a source, and of a target, that it is made for; longer ones are read too, but for the score location",
       .least = 1,
       .greatest = 1 << 20},
      {.name = "bidirectional", .target = &bidirectional, .help = "the encoder reads both ways"},
      {.name = "reverse_source", .target = &reverse_source, .help = "the encoder reads from the end (Sutskever et al. 2014)"},
      {.name = "attention", .target = &attention, .help = "none, or style, score, align and read"},
      {.name = "input_feeding", .target = &input_feeding, .help = "the decoder reads what it last gave its head (Luong et al. 2015)"},
      {.name = "dropout",
       .target = &dropout,
       .help = "on embeddings, between layers and on what the head reads",
       .least = 0,
       .greatest = 0.999},
      {.name = "norm", .target = &norm, .help = "layer: of what a cell's gates are made of (Ba et al. 2016)", .words = {"none", "layer"}},
      {.name = "scheduled_sampling",
       .target = &scheduled_sampling,
       .help = "probability that training reads a word that the model drew instead of the one given (Bengio et al. 2015)",
       .least = 0,
       .greatest = 1},
      {.name = "scheduled_sampling_steps",
       .target = &scheduled_sampling_steps,
       .help = "updates in which that probability grows from 0",
       .least = 0,
       .greatest = 1e12},
  };
}

std::optional<std::string> RecurrentSeq2seqSettings::contradiction() {
  if (bidirectional && reverse_source) return "reverse_source: a bidirectional encoder reads both ways already";
  if (input_feeding && bahdanau()) return "input_feeding: in Bahdanau's style the context enters the cell already";
  return std::nullopt;
}

}  // namespace heed
