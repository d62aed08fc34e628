#pragma once

#include <string>

#include "nn/models/blocks.hpp"

namespace heed {

/// A comment line per layer: its attention, parameters, what decoding keeps, and operations of a forward pass over a context.
std::string layers_in_words(StackSettings const& settings, Parameters const& parameters);

}  // namespace heed
