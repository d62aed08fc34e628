#pragma once

#include <string>

namespace heed {

/// Sets products() (autograd/products.hpp) by the words of `train.products` (openblas, onednn) and `train.precision` (bfloat16; anything
/// else: as the tensors are). Throws Error for bfloat16 on a processor without it.
void use_products(std::string const& library, std::string const& precision);

}  // namespace heed
