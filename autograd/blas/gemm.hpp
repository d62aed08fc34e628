#pragma once

#include <cstdint>

namespace heed::kernels {

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

/// The same by OpenBLAS: what float64 is multiplied by, and the reference for float32. None of n, m, k is 0.
template <class T>
void openblas_gemm(std::int64_t n, std::int64_t m, std::int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, std::int64_t leading_c);

/// What a product is added to: what C holds already, or a row that is repeated, rows, both (their sum), or nothing.
template <class T>
struct Addend {
  T const* row = nullptr;     ///< [m]
  T const* matrix = nullptr;  ///< [n, m], contiguous
  bool in_place = false;
};

/// C [n, m] = A [n, k] · B [k, m] + addend, contiguous, split by rows of C over the pool; bits do
/// not depend on how many threads that has. `sum` [k], if not null, becomes the sum of the
/// rows of an A that is not transposed, each taken while the product has it near: what a bias's gradient is beside that of the layer's
/// input.
template <class T>
void parallel_gemm(std::int64_t n, std::int64_t m, std::int64_t k, Matrix<T> a, Matrix<T> b, T* c, Addend<T> addend = {}, T* sum = nullptr);

/// Whether products of bfloat16 numbers take longer than those of float32: Intel's processors make half as many of them since Sapphire
/// Rapids (86 and 175 GFLOP/s on a core of an Emerald Rapids) and leave speed to AMX, which a virtual machine may hide. Factors are then
/// rounded and multiplied in float32, which has all of bfloat16's numbers.
bool bfloat16_is_slower();

}  // namespace heed::kernels
