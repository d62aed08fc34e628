#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/attention/steps.hpp"

namespace heed {

/// `attention:` of a recurrent decoder: none, or its kind and position in the step.
struct RecurrentAttentionSettings : AttentionSettings {
  std::string style = "luong";

  bool bahdanau() const { return style == "bahdanau"; }
  bool luong() const { return style == "luong"; }
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  /// none; bahdanau: {style: bahdanau, score: additive}; luong: {style: luong, score: general}; or a name of attention, in Luong's style.
  bool from_word(std::string_view word) override;
  std::vector<std::string> short_words() override;
};

/// What recurrent models have in common. Each lists the keys that it has, and says of what they are.
struct RecurrentSettings : Settings {
  std::string cell = "lstm";
  Index layers = 1;
  Index width = 64;
  Index context = 64;
  double dropout = 0;
  std::string norm = "none";

  /// As in RecurrentCell.
  bool normed() const { return norm == "layer"; }

 protected:
  Field cell_field(std::string help);
  Field layers_field(std::string help);
  Field width_field(std::string help = "width of a cell's state");
  Field context_field(std::string help);
  Field dropout_field(std::string help = "dropout on embeddings, between layers and on the input of the output layer");
  Field norm_field();
};

/// And those with a decoder that may attend.
struct RecurrentDecoderSettings : RecurrentSettings {
  Index embedding = 64;
  RecurrentAttentionSettings attention;

  bool bahdanau() const { return attention.bahdanau(); }
  bool luong() const { return attention.luong(); }

 protected:
  Field embedding_field();
  Field attention_field();
};

}  // namespace heed
