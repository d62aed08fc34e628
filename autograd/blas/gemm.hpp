#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "autograd/blas/elements.hpp"
#include "autograd/blas/products.hpp"
#include "autograd/kernels/rows.hpp"

/// Backends of matrix products.
namespace heed::kernels {

/// Adds to product_flops().
void count_product_flops(Index operations);

/// Makes OpenBLAS multiply on the calling thread alone, from then on.
void keep_library_single_threaded();

/// gemm() by OpenBLAS: used for float64, and as the reference for float32. None of n, m, k is 0.
template <class T>
void openblas_gemm(Index n, Index m, Index k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, Index leading_c);

/// Whether products of bfloat16 numbers are slower than those of float32: Intel's processors since Sapphire Rapids compute half as many of
/// them (86 and 175 GFLOP/s on one core of an Emerald Rapids) and rely on AMX, which a virtual machine may hide. Factors are then rounded
/// to bfloat16 and multiplied in float32, with the same result.
bool bfloat16_is_slower();

/// The result of a product from its sums: alpha · sum + beta · C + row + matrix.
struct Finish {
  using Batch = Lanes<float>;
  static constexpr Index L = lanes<float>;

  float alpha, beta;
  float const* row;     ///< of C's width; null: none
  float const* matrix;  ///< with C's leading dimension; null: none

  /// `count` ≤ L sums at c + offset, in column `column`.
  void some(Batch const& sum, float* c, Index column, Index offset, Index count) const {
    auto const load = [count](float const* x) { return load_some<float>(x, count, 0.0F); };
    Batch result = Batch(alpha) * sum;
    if (beta != 0) result = xsimd::fma(Batch(beta), load(c + offset), result);
    if (row != nullptr) result += load(row + column);
    if (matrix != nullptr) result += load(matrix + offset);
    store_some<float>(result, c + offset, count);
  }

  /// Whole batches: branches are taken once for a tile, whose sums stay in registers.
  template <int R, int batches>
  [[gnu::always_inline]] void all(Batch (&sums)[R][batches], float* c, Index leading, Index column) const {
    auto const each = [&](auto const& change) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int i = 0; i < batches; ++i) change(sums[r][i], r * leading + column + i * L, i);
      }
    };
    if (alpha != 1) each([factor = Batch(alpha)](Batch& sum, Index, int) { sum = factor * sum; });
    if (beta != 0)
      each([&, factor = Batch(beta)](Batch& sum, Index at, int) { sum = xsimd::fma(factor, Batch::load_unaligned(c + at), sum); });
    if (row != nullptr) {
      Batch more[batches];
      for (int i = 0; i < batches; ++i) more[i] = Batch::load_unaligned(row + column + i * L);
      each([&](Batch& sum, Index, int i) { sum += more[i]; });
    }
    if (matrix != nullptr) each([&](Batch& sum, Index at, int) { sum += Batch::load_unaligned(matrix + at); });
    each([&](Batch const& sum, Index at, int) { sum.store_unaligned(c + at); });
  }
};

/// The sum of a matrix's rows, computed by threads while they use the rows for something else. Sums over stretches of `stretch` rows are
/// added in order at the end, so that bits depend neither on the threads nor on timing.
template <class T>
class RowSum {
 public:
  /// total [width]; null: no sum is wanted. A stretch is a multiple of `align` rows.
  RowSum(Index rows, Index width, T* total, Index align)
      : width_(width), total_(total), stretch_(std::max(align, (rows + max_stretches * align - 1) / (max_stretches * align) * align)) {
    if (total == nullptr) return;
    parts_.resize(static_cast<std::size_t>((rows + stretch_ - 1) / stretch_ * width));
  }
  RowSum(RowSum const&) = delete;
  RowSum& operator=(RowSum const&) = delete;
  ~RowSum() {
    if (total_ == nullptr) return;
    std::fill_n(total_, width_, T(0));
    for (auto part = parts_.begin(); part != parts_.end(); part += width_)
      std::transform(total_, total_ + width_, part, total_, std::plus<T>());
  }

  /// Rows per stretch; pieces of work must begin at multiples of it.
  Index stretch() const { return stretch_; }

  /// Adds columns [column, column + count) of rows [begin, end), which begin at x. Two threads must not work on one stretch.
  void add(Index begin, Index end, Index column, Index count, T const* x, Index leading) {
    while (begin < end) {
      Index const rows = std::min(end, (begin / stretch_ + 1) * stretch_) - begin;
      T* const part = parts_.data() + begin / stretch_ * width_ + column;
      each_batch<T>(count, [&](Index j, auto const& batch) {
        Lanes<T> sum = batch.load(part + j);
        for (Index i = 0; i < rows; ++i) sum += batch.load(x + i * leading + j);
        batch.store(sum, part + j);
      });
      begin += rows;
      x += rows * leading;
    }
  }
  /// Adds whole rows [begin, end) of x; does nothing if no sum is wanted.
  void add_rows(Index begin, Index end, Matrix<T> const& x) {
    if (total_ != nullptr) add(begin, end, 0, width_, x.data + begin * x.leading, x.leading);
  }

 private:
  static constexpr Index max_stretches = 32;  // number of stretches
  Index width_;
  T* total_;
  Index stretch_;
  std::vector<T> parts_;
};

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
