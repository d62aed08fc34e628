#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "nn/attention/steps.hpp"
#include "nn/heads/head.hpp"

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

/// `model: {kind: recurrent_lm, …}`.
struct RecurrentLmSettings : RecurrentSettings {
  std::optional<Index> embedding;  ///< default: width
  bool tie = false;
  Choice head = head_choice(SeesText::past);

  RecurrentLmSettings() { width = 128; }
  Index embedded() const { return embedding.value_or(width); }
  std::vector<Field> fields() override {
    return {
        cell_field("recurrent cell of every layer"),
        layers_field("number of recurrent layers"),
        width_field(),
        field(&embedding, "embedding", "width of the token embeddings; default: width").in(1, 65536),
        context_field("tokens of a training sequence, through all of which gradients flow"),
        field(&tie, "tie", "share weights of the output layer and the token embedding (Press & Wolf 2017)"),
        dropout_field(),
        norm_field(),
        field(&head, "head", "output: tokens, or labels of examples"),
    };
  }
  std::optional<std::string> contradiction() override {
    if (tie && embedded() != width)
      return fmt::format("tie: an output layer of width {} cannot share weights with an embedding of width {}", width, embedded());
    return std::nullopt;
  }
};

/// `model: {kind: recurrent_seq2seq, …}`.
struct RecurrentSeq2seqSettings : RecurrentDecoderSettings {
  bool bidirectional = false;
  bool reverse_source = false;
  bool input_feeding = false;
  double scheduled_sampling = 0;
  Index scheduled_sampling_steps = 0;

  /// The probability that a training step after `step` updates reads a sampled word.
  double scheduled_sample(Index step) const {
    double const grown = scheduled_sampling_steps == 0 ? 1 : static_cast<double>(step) / static_cast<double>(scheduled_sampling_steps);
    return scheduled_sampling * std::min(1.0, grown);
  }
  std::vector<Field> fields() override {
    return {
        cell_field("recurrent cell of encoder and decoder"),
        layers_field("layers of the encoder, and as many of the decoder"),
        width_field(),
        embedding_field(),
        context_field("longest source and target in tokens; longer ones also work, except with the score location"),
        field(&bidirectional, "bidirectional", "bidirectional encoder"),
        field(&reverse_source, "reverse_source", "reverse the source (Sutskever et al. 2014)"),
        attention_field(),
        field(&input_feeding, "input_feeding", "the decoder's input includes the last attentional vector (Luong et al. 2015)"),
        dropout_field(),
        norm_field(),
        field(&scheduled_sampling, "scheduled_sampling",
              "probability that an input of the decoder in training is sampled from the model (Bengio et al. 2015)")
            .in(0, 1),
        field(&scheduled_sampling_steps, "scheduled_sampling_steps", "steps over which this probability grows from 0").in(0, 1e12),
    };
  }
  std::optional<std::string> contradiction() override {
    if (bidirectional && reverse_source) return "reverse_source: a bidirectional encoder reads both ways already";
    if (input_feeding && bahdanau()) return "input_feeding: in Bahdanau's style the context enters the cell already";
    return std::nullopt;
  }
};

}  // namespace heed
