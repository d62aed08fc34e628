#pragma once

#include <cstdint>

#include "autograd/kernels/simd/pairs.hpp"

namespace heed::kernels {

/// A bfloat16 number: the upper half of a float32.
using BFloat16 = std::uint16_t;

/// out [rows, columns], contiguous: x rounded to the nearest, ties to even.
void round_to_bfloat16(float const* x, std::int64_t leading, std::int64_t rows, std::int64_t columns, BFloat16* out);

}  // namespace heed::kernels
