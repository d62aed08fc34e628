#pragma once

#include "autograd/kernels/simd/portable.hpp"

/// What the kernels need of a processor beyond xsimd. Intrinsics are used only in this folder (and by AMX, products/amx.cpp). Every
/// function has a portable form in xsimd and plain C++, and may have another one for an instruction set; `native` has the best one for the
/// target of this build. tests/autograd/simd.cpp compares the two forms.
namespace heed::kernels::native {

using namespace portable;  // a function declared in `native` itself takes precedence

}  // namespace heed::kernels::native

#if defined(__AVX512F__)
#include "autograd/kernels/simd/avx512.hpp"
#elif defined(__AVX2__)
#include "autograd/kernels/simd/avx2.hpp"
#elif defined(__aarch64__) || (defined(__SSE2__) && !defined(__AVX__))
#include "autograd/kernels/simd/four_lanes.hpp"
#endif

namespace heed::kernels {

using native::keep_some;
using native::largest;
using native::load_some;
using native::multiply_lower;
using native::reciprocal_estimate;
using native::scaled_by_power;
using native::scaled_by_small_power;
using native::store_some;
using native::transpose;

}  // namespace heed::kernels
