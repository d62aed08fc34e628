#pragma once

#include "autograd/kernels/simd/portable.hpp"

/// What the kernels ask of a processor beyond xsimd. This folder is the only place with intrinsics (but for AMX, a kernel of its own:
/// products/amx.cpp). Every function has a portable form, in xsimd and plain C++, and may have another one for an instruction set;
/// `native` has the best one for what this is compiled for. Tests hold the two forms against each other (tests/autograd/simd.cpp).
namespace heed::kernels::native {

using namespace portable;  // a function that is declared in `native` itself comes first

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
using native::store_some;
using native::store_upper;
using native::transpose;

}  // namespace heed::kernels
