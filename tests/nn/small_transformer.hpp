#pragma once

#include "nn/models/transformer.hpp"
#include "tests/nn/plain_decoding.hpp"

// What decoding is tested on.

namespace heed::test {

inline TransformerSettings small(std::string const& attention = "scaled", std::string const& position = "sinusoidal") {
  auto settings = small_stack<TransformerSettings>(attention, position, 8);
  settings.tie = false;  // or a token would be followed by itself, for ever
  return settings;
}

/// With parameters far from uniform.
struct Made {
  explicit Made(TransformerSettings const& settings, DType dtype = DType::float64, Index words = vocabulary)
      : parameters(3, dtype, wide(0.7)), made(pair_model("transformer", parameters, settings, words)), model(*made) {}
  Parameters parameters;
  std::unique_ptr<Model> made;
  Model& model;
};

}  // namespace heed::test
