#pragma once

#include <algorithm>

#include "autograd/blas/products.hpp"
#include "autograd/kernels/rows.hpp"

/// Triangular systems of many right sides.
namespace heed::kernels {

/// Rows that are solved one by one; what they owe to other rows is a product.
inline constexpr Index rows_of_solve = 16;

/// W [n, m] becomes (I + A)⁻¹ W, or (I + A)⁻ᵀ W; of A [n, n] only what is below the diagonal is read.
template <class T>
void solve_unit_lower(Index n, Index m, T const* a, Index leading_a, T* w, Index leading_w, bool transposed) {
  auto const solve_row = [&](Index i, Index from, Index until) {  // the rows [from, until) are solved
    T* const row = w + i * leading_w;
    each_batch<T>(m, [&](Index c, auto const& batch) {
      Lanes<T> sum = batch.load(row + c);
      for (Index j = from; j < until; ++j)
        sum = xsimd::fnma(Lanes<T>(transposed ? a[j * leading_a + i] : a[i * leading_a + j]), batch.load(w + j * leading_w + c), sum);
      batch.store(sum, row + c);
    });
  };
  Index const blocks = (n + rows_of_solve - 1) / rows_of_solve;
  for (Index k = 0; k < blocks; ++k) {
    Index const first = (transposed ? blocks - 1 - k : k) * rows_of_solve, last = std::min(first + rows_of_solve, n);
    T* const rows = w + first * leading_w;
    if (transposed) {
      Matrix<T> const below{a + last * leading_a + first, leading_a, true};
      if (last < n) gemm<T>(last - first, m, n - last, -1, below, {w + last * leading_w, leading_w}, 1, rows, leading_w);
      for (Index i = last - 1; i >= first; --i) solve_row(i, i + 1, last);
    } else {
      if (first > 0) gemm<T>(last - first, m, first, -1, {a + first * leading_a, leading_a}, {w, leading_w}, 1, rows, leading_w);
      for (Index i = first; i < last; ++i) solve_row(i, first, i);
    }
  }
}

}  // namespace heed::kernels
