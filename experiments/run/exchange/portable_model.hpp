#pragma once

#include <cstdint>
#include <string>

#include "nn/optimizer.hpp"
#include "nn/settings.hpp"

namespace heed {

/// A trained model without the run that it came from: what another program's files say of it, and what they are written from.
struct PortableModel {
  std::string origin;           ///< the run, or the file of its weights: what messages begin with
  Choice model;                 ///< `model:`, with its settings
  std::int64_t vocabulary = 0;  ///< tokens that it knows
  NamedTensors tensors;         ///< its parameters by heed's names
  std::string tokenizer;        ///< as Dataset::tokenizer() gives it; empty: there is none
};

}  // namespace heed
