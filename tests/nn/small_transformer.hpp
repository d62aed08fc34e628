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

struct Made : PairModel {
  explicit Made(TransformerSettings const& settings, DType dtype = DType::float64, Index words = vocabulary)
      : PairModel("transformer", settings, words, 0.7, dtype) {}
};

}  // namespace heed::test
