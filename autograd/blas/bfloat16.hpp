#pragma once

#include <cstdint>

#include "autograd/kernels/rows.hpp"

namespace heed::kernels {

/// A bfloat16 number: the upper half of a float32.
using BFloat16 = std::uint16_t;

/// Each number rounded to the nearest bfloat16, ties to even, as float32 numbers whose lower half is 0; NaN stays NaN.
inline Lanes<float> rounded_to_bfloat16(Lanes<float> const& x) {
  using Bits = xsimd::batch<std::uint32_t>;
  auto const bits = bits_as<std::uint32_t>(x);
  auto const nearest = bits + Bits(0x7fff) + ((bits >> 16) & Bits(1)), quiet_nan = bits | Bits(0x400000);
  auto const upper = [](Bits const& b) { return bits_as<float>(b & Bits(0xffff0000)); };
  return xsimd::select(xsimd::isnan(x), upper(quiet_nan), upper(nearest));
}

/// out [rows, columns], contiguous: x so rounded.
void round_to_bfloat16(float const* x, std::int64_t leading, std::int64_t rows, std::int64_t columns, BFloat16* out);

}  // namespace heed::kernels
