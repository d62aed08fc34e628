#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "nn/models/recurrent/recurrent_settings.hpp"

namespace heed {

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
