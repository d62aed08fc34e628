#pragma once

#include "autograd/kernels/simd/portable.hpp"

/// What xsimd has for four lanes alone.
namespace heed::kernels::native {

inline void transpose(float const* x, std::int64_t leading, float* out, std::int64_t leading_out) {
  using Batch = Lanes<float>;
  auto const row = [&](std::int64_t r) { return Batch::load_unaligned(x + r * leading); };
  auto const store = [&](std::int64_t i, Batch const& column) { column.store_aligned(out + i * leading_out); };
  Batch const a = row(0), b = row(1), c = row(2), d = row(3);
  Batch const ac = xsimd::zip_lo(a, c), bd = xsimd::zip_lo(b, d);  // a0 c0 a1 c1, b0 d0 b1 d1
  Batch const ac_high = xsimd::zip_hi(a, c), bd_high = xsimd::zip_hi(b, d);
  store(0, xsimd::zip_lo(ac, bd));
  store(1, xsimd::zip_hi(ac, bd));
  store(2, xsimd::zip_lo(ac_high, bd_high));
  store(3, xsimd::zip_hi(ac_high, bd_high));
}

}  // namespace heed::kernels::native
