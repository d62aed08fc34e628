#pragma once

#include "autograd/blas/elements.hpp"
#include "autograd/blas/products.hpp"
#include "autograd/blas/row_sum.hpp"

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

// Products of float32 matrices by tiles of sums in registers (Goto & van de Geijn 2008). Element: Numbers, Rounded or Pairs
// (elements.hpp), the last where has_pairs. An element of C is summed over k in order, in stretches of 384 words (192 if A is transposed)
// for any n and m: its bits do not depend on how C is split.

/// A [n, k] and B [k, m]; none of n, m, k is 0.
struct ProductFactors {
  Index n, m, k;
  Matrix<float> a, b;
};

/// C = alpha · A · B + beta · C + addend. If A is not transposed, A's rows, before rounding, are added to `sum`.
struct ProductResult {
  float alpha, beta;
  float* c;
  Index leading;
  Addend<float> addend = {};     ///< its matrix has C's leading dimension; in_place is ignored
  RowSum<float>* sum = nullptr;  ///< null: none is wanted
};

/// On the calling thread alone.
template <class Element>
void tiled_gemm(ProductFactors const& factors, ProductResult const& result);
/// The pool's threads take rows of C dynamically, with the bits of one thread.
template <class Element>
void parallel_tiled_gemm(ProductFactors const& factors, ProductResult const& result);

// The same with factors rounded to bfloat16 and sums in float32 by AMX, the matrix instructions of Intel's processors since Sapphire
// Rapids: up to 16 times the throughput of AVX-512 in float32.

/// Whether the processor has AMX, this build may use it and the system permits it.
bool has_amx();

/// An element of C is summed over k in order, in stretches of 512 for any n and m. Subnormal float32 numbers count as 0.
void amx_gemm(ProductFactors const& factors, ProductResult const& result);
void parallel_amx_gemm(ProductFactors const& factors, ProductResult const& result);

}  // namespace heed::kernels
