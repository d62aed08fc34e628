#pragma once

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "nn/heads/head.hpp"
#include "nn/models/recurrent/recurrent_settings.hpp"

namespace heed {

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

}  // namespace heed
