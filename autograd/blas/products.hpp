#pragma once

#include <cstdint>
#include <string>

#include "autograd/memory.hpp"

/// Products of matrices: the door of this folder, which is a library of its own. It has gemm(), parallel_gemm() and RoundedMatrix::times(),
/// and how they are made.
namespace heed {

/// How float32 matrices are multiplied. A choice of the user, never of a clock: the same settings give the same bits.
struct Products {
  /// Rounds the factors to bfloat16 (the nearest, ties to even) and sums their products in float32: by AMX or AVX512_BF16 where the
  /// processor has them, with up to sixteen times or twice float32's speed, else as float32 numbers, which have all of bfloat16's. A
  /// decoder's weights are rounded once (autograd/rounded_weights.hpp).
  bool bfloat16 = false;
};

/// Sets it for the whole process; not while products are running.
void set_products(Products wanted);
Products products();
/// How the factors of float32 products are multiplied here: "in float32", "in bfloat16 by AVX512_BF16", "in bfloat16 by AMX", or "in
/// bfloat16, multiplied in float32".
std::string factors_in_words();

/// While it lives, products are made so; then as before.
class WithProducts {
 public:
  explicit WithProducts(Products wanted) : before_(products()) { set_products(wanted); }
  ~WithProducts() { set_products(before_); }
  WithProducts(WithProducts const&) = delete;
  WithProducts& operator=(WithProducts const&) = delete;

 private:
  Products before_;
};

/// Floating-point operations of all matrix products since the program began, those of other threads included: 2·n·m·k each.
std::int64_t product_flops();

/// The library of float64's products, the kernels that it chose for this processor, and how float32's factors are multiplied: "OpenBLAS
/// 0.3.21 … Cooperlake, factors in float32".
std::string matrix_library();

namespace detail {
void count_product_flops(std::int64_t operations);
/// The libraries' own threads, of which each thread of ours wants none: to be called in every thread that multiplies.
void keep_libraries_single_threaded();
}  // namespace detail

namespace kernels {

/// One factor of a product: rows × columns elements with a leading dimension, read transposed or not.
template <class T>
struct Matrix {
  T const* data;
  std::int64_t leading;
  bool transposed = false;
};

/// C [n, m] = alpha · A [n, k] · B [k, m] + beta · C, row-major, on the calling thread alone. T is float or double.
template <class T>
void gemm(std::int64_t n, std::int64_t m, std::int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, std::int64_t leading_c);

/// What a product is added to: what C holds already, or a row that is repeated, rows, both (their sum), or nothing.
template <class T>
struct Addend {
  T const* row = nullptr;     ///< [m]
  T const* matrix = nullptr;  ///< [n, m], contiguous
  bool in_place = false;
};

/// C [n, m] = A [n, k] · B [k, m] + addend, contiguous, split by rows of C over the pool; bits do not depend on how many threads that has.
/// `sum` [k], if not null, becomes the sum of the rows of an A that is not transposed, each taken while the product has it near: what a
/// bias's gradient is beside that of the layer's input.
template <class T>
void parallel_gemm(std::int64_t n, std::int64_t m, std::int64_t k, Matrix<T> a, Matrix<T> b, T* c, Addend<T> addend = {}, T* sum = nullptr);

/// A matrix B [m, k] that is rounded to bfloat16 once and multiplied by many rows: what a weight is while tokens are decoded. A row's
/// product is as fast as the matrix can be read, so half the bytes are half the time.
class RoundedMatrix {
 public:
  /// Copies b [m, k], contiguous.
  RoundedMatrix(float const* b, std::int64_t m, std::int64_t k);

  /// c [m] = B · round(a) + bias + residual, a [k], on the pool; bias and residual [m] may be null. The bits of parallel_gemm() with a
  /// factor b that is transposed, in bfloat16.
  void times(float const* a, float const* bias, float const* residual, float* c) const;

 private:
  std::int64_t m_, k_;
  std::int64_t row_;  ///< words of a row
  Buffer words_;      ///< [m, row]: in word i of each batch of words the numbers i (lower half) and i + lanes (upper) of two batches
};

}  // namespace kernels

}  // namespace heed
