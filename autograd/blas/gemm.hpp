#pragma once

#include "autograd/blas/products.hpp"
#include "autograd/index.hpp"

/// Backends of matrix products.
namespace heed::kernels {

/// Makes OpenBLAS multiply on the calling thread alone, from then on.
void keep_library_single_threaded();

/// gemm() by OpenBLAS: used for float64, and as the reference for float32. None of n, m, k is 0.
template <class T>
void openblas_gemm(Index n, Index m, Index k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, Index leading_c);

/// Whether products of bfloat16 numbers are slower than those of float32: Intel's processors since Sapphire Rapids compute half as many of
/// them (86 and 175 GFLOP/s on one core of an Emerald Rapids) and rely on AMX, which a virtual machine may hide. Factors are then rounded
/// to bfloat16 and multiplied in float32, with the same result.
bool bfloat16_is_slower();

}  // namespace heed::kernels
