#pragma once

#include <cstdint>
#include <string>

#include "autograd/kernels/bfloat16.hpp"
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

/// The same product of factors that are bfloat16 already, summed in float32.
void onednn_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<BFloat16> a, Matrix<BFloat16> b, float beta, float* c,
                 std::int64_t leading_c);

}  // namespace heed::kernels
