#pragma once

#include "autograd/tensor.hpp"

namespace heed::kernels {

/// into += addition, element by element; same shape and real dtype.
void add_in_place(Tensor& into, Tensor const& addition);

}  // namespace heed::kernels
