#pragma once

#include <memory>

#include "experiments/data/tokenizer.hpp"

namespace heed {

/// One token a byte: the vocabulary is the 256 bytes.
std::shared_ptr<Tokenizer const> byte_tokenizer();

}  // namespace heed
