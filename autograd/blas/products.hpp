#pragma once

#include <string>

#include "autograd/index.hpp"
#include "autograd/memory.hpp"

/// Matrix products, the interface of this folder: gemm(), parallel_gemm(), RoundedMatrix::times(), and how they are computed.
namespace heed {

/// How float32 matrices are multiplied. Chosen by the user, never by timing: equal settings give equal bits.
struct Products {
  /// Round the factors to bfloat16 (to nearest, ties to even) and sum their products in float32: by AMX or AVX512_BF16 where available, up
  /// to 16 or 2 times as fast as float32; elsewhere by float32 arithmetic on the rounded numbers. A decoder's weights are rounded once
  /// (autograd/ops/rounded_weights.hpp).
  bool bfloat16 = false;
};

/// Sets it for the whole process; must not be called while products are running.
void set_products(Products wanted);
Products products();
/// How float32 factors are multiplied: "in float32", "in bfloat16 by AVX512_BF16", "… by AMX", "in bfloat16, multiplied in float32".
std::string factors_in_words();

/// While it lives, products use these settings; then the earlier ones.
struct WithProducts : Temporarily<Products> {
  explicit WithProducts(Products wanted);
};

/// Floating-point operations of all matrix products since the program began, in all threads: 2·n·m·k each.
Index product_flops();

/// The library for float64 products, its kernels here, and factors_in_words(): "OpenBLAS 0.3.21 … Cooperlake, factors in float32".
std::string matrix_library();

namespace kernels {

/// A factor of a product: rows × columns elements with a leading dimension, read transposed or not.
template <class T>
struct Matrix {
  T const* data;
  Index leading;
  bool transposed = false;
};

/// C [n, m] = alpha · A [n, k] · B [k, m] + beta · C, row-major, single-threaded. T is float or double.
template <class T>
void gemm(Index n, Index m, Index k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, Index leading_c);

/// What is added to a product: C's old values, or a row that is repeated, a matrix, both (their sum), or nothing.
template <class T>
struct Addend {
  T const* row = nullptr;     ///< [m]
  T const* matrix = nullptr;  ///< [n, m], contiguous
  bool in_place = false;
};

/// C [n, m] = A [n, k] · B [k, m] + addend, contiguous; the rows of C are split over the pool's threads, whose number changes no bit. `sum`
/// [k], if not null, receives the sum of A's rows (A not transposed), computed while they are in cache: a bias's gradient.
template <class T>
void parallel_gemm(Index n, Index m, Index k, Matrix<T> a, Matrix<T> b, T* c, Addend<T> addend = {}, T* sum = nullptr);

/// A matrix B [m, k] rounded to bfloat16 once and multiplied by many rows: a weight while tokens are decoded. Products with a single row
/// are limited by memory bandwidth, so half the bytes take half the time.
class RoundedMatrix {
 public:
  /// Copies b [m, k], contiguous.
  RoundedMatrix(float const* b, Index m, Index k);

  /// c [m] = B · round(a) + bias + residual, a [k], on the pool; bias and residual [m] may be null. Bits of parallel_gemm() in bfloat16.
  void times(float const* a, float const* bias, float const* residual, float* c) const;

 private:
  Index m_, k_;
  Index row_;     ///< words per row
  Buffer words_;  ///< [m, row]: word i of each batch holds the numbers i (lower half) and i + lanes (upper half) of two batches
};

}  // namespace kernels

}  // namespace heed
