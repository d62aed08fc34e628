#pragma once

#include "autograd/blas/products.hpp"

/// What products are made by.
namespace heed::kernels {

/// gemm() by OpenBLAS: what float64 is multiplied by, and the reference for float32. None of n, m, k is 0.
template <class T>
void openblas_gemm(std::int64_t n, std::int64_t m, std::int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, std::int64_t leading_c);

/// Whether products of bfloat16 numbers take longer than those of float32: Intel's processors make half as many of them since Sapphire
/// Rapids (86 and 175 GFLOP/s on a core of an Emerald Rapids) and leave speed to AMX, which a virtual machine may hide. Factors are then
/// rounded and multiplied in float32, which has all of bfloat16's numbers.
bool bfloat16_is_slower();

}  // namespace heed::kernels
