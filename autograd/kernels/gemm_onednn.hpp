#pragma once

#include <cstdint>
#include <string>

#include "autograd/kernels/gemm.hpp"

/// oneDNN's products, single-threaded like OpenBLAS's.
namespace heed::kernels {

/// Whether oneDNN's float32 kernel is the faster one for a product of this shape: a table, measured once (see its definition).
bool onednn_is_faster(std::int64_t n, std::int64_t m, std::int64_t k);

/// "oneDNN 2.6.3".
std::string onednn_version();

/// As gemm() (autograd/kernels/gemm.hpp).
void onednn_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<float> a, Matrix<float> b, float beta, float* c,
                 std::int64_t leading_c);

/// A bfloat16 number: the upper half of a float32.
using BFloat16 = std::uint16_t;

/// out [rows, columns], contiguous: x rounded to the nearest bfloat16, ties to even; NaN stays NaN.
void round_to_bfloat16(float const* x, std::int64_t leading, std::int64_t rows, std::int64_t columns, BFloat16* out);

/// The same product of factors that are bfloat16 already, summed in float32.
void onednn_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<BFloat16> a, Matrix<BFloat16> b, float beta, float* c,
                 std::int64_t leading_c);

}  // namespace heed::kernels
