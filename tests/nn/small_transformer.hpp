#pragma once

#include <cstdint>
#include <string>

#include "nn/models/transformer.hpp"
#include "tests/nn/plain_decoding.hpp"

// What decoding is tested on.

namespace heed::test {

inline TransformerSettings small(std::string const& attention = "scaled", std::string const& position = "sinusoidal") {
  TransformerSettings settings;
  settings.layers = 2;
  settings.heads = 2;
  settings.width = 8;
  settings.context = 12;
  settings.tie = false;  // or a token would be followed by itself, for ever
  settings.position = position;
  settings.attention.from_word(attention);
  return settings;
}

/// With parameters far from uniform.
struct Made {
  explicit Made(TransformerSettings const& settings, DType dtype = DType::float64, std::int64_t words = vocabulary)
      : parameters(3, dtype, wide()), model(parameters, settings, words) {}
  Parameters parameters;
  Transformer model;
};

}  // namespace heed::test
