#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
  Field layers_field(std::string help) { return field(&layers, "layers", std::move(help)).in(1, 100); }
  Field width_field(std::string help = "width of a cell's state") { return field(&width, "width", std::move(help)).in(1, 65536); }
  Field context_field(std::string help) { return field(&context, "context", std::move(help)).in(1, 1 << 20); }
  Field dropout_field(std::string help = "dropout on embeddings, between layers and on the input of the output layer") {
    return field(&dropout, "dropout", std::move(help)).in(0, 0.999);
  }
  Field norm_field() {
    return field(&norm, "norm", "layer: layer norm of the gates' pre-activations (Ba et al. 2016)").one_of({"none", "layer"});
  }
};

/// And those with a decoder that may attend.
struct RecurrentDecoderSettings : RecurrentSettings {
  Index embedding = 64;
  RecurrentAttentionSettings attention;

  bool bahdanau() const { return attention.bahdanau(); }
  bool luong() const { return attention.luong(); }

 protected:
  Field embedding_field() { return field(&embedding, "embedding", "width of the word embeddings").in(1, 65536); }
  Field attention_field() { return field(&attention, "attention", "none, or a section with style, score, align and read"); }
};

}  // namespace heed
