#pragma once

#include <string>

#include "autograd/products.hpp"

namespace heed {

/// The words of `train.products` (openblas, onednn) and `train.precision` (bfloat16; anything else: as the tensors are) as the engine's
/// setting.
Products products_named(std::string const& library, std::string const& precision);

}  // namespace heed
