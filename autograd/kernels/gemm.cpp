// The one place where matrices are multiplied: by OpenBLAS through xtensor-blas's interface, over pointers and leading dimensions only (its
// linalg::dot may take a wrong path on views), by oneDNN, or, where it is faster, here.

#include "autograd/kernels/gemm.hpp"

#include <algorithm>
#include <complex>
#include <vector>

#include <cpuid.h>
#include <xflens/cxxblas/cxxblas.cxx>
#include <xtensor-blas/xblas_config.hpp>

#include "autograd/kernels/gemm_amx.hpp"
#include "autograd/kernels/gemm_onednn.hpp"
#include "autograd/kernels/gemm_tiles.hpp"
#include "autograd/kernels/gemv.hpp"
#include "autograd/kernels/row_sum.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/memory.hpp"
#include "autograd/parallel.hpp"
#include "autograd/products.hpp"

namespace heed::kernels {

namespace {

using Index = BLAS_IDX;
Index index(std::int64_t i) { return static_cast<Index>(i); }

/// Rows of C that are made together: pieces of as many have no leftovers.
constexpr std::int64_t tile_rows = 24, amx_rows = 32;

/// Nanoseconds of a multiply-add, roughly: half of one at 100 GFLOP/s.
constexpr double fused_cost = 0.02;

/// A factor of `rows` × `columns` (as the product sees it) in bfloat16, contiguous in `room`.
Matrix<BFloat16> rounded(Matrix<float> const& x, std::int64_t rows, std::int64_t columns, BFloat16* room) {
  if (x.transposed) std::swap(rows, columns);
  round_to_bfloat16(x.data, x.leading, rows, columns, room);
  return {room, columns, x.transposed};
}

/// The same in float32, which has all bfloat16 numbers; on the pool, if that is free.
Matrix<float> rounded(Matrix<float> const& x, std::int64_t rows, std::int64_t columns, float* room) {
  if (x.transposed) std::swap(rows, columns);
  parallel_for(rows, 0.1 * static_cast<double>(columns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      transform_row<float>(
          room + r * columns, columns, [](auto const& y) { return rounded_to_bfloat16(y); }, x.data + r * x.leading);
  });
  return {room, columns, x.transposed};
}

/// This thread's room for a factor that is rounded; which: 0 or 1.
template <class Number>
Number* scratch(std::size_t which, std::int64_t elements) {
  thread_local std::vector<Number> rooms[2];
  auto& room = rooms[which];
  if (room.size() < static_cast<std::size_t>(elements)) room.resize(static_cast<std::size_t>(elements));
  return room.data();
}

template <class T>
void scale_rows(std::int64_t n, std::int64_t m, T beta, T* c, std::int64_t leading_c) {
  for (std::int64_t i = 0; i < n; ++i)
    std::transform(c + i * leading_c, c + i * leading_c + m, c + i * leading_c, [&](T x) { return beta == 0 ? T(0) : beta * x; });
}

/// Rows [begin, end) of the addend into C; false if there is none.
template <class T>
bool put_addend(Addend<T> const& addend, std::int64_t begin, std::int64_t end, std::int64_t m, T* c) {
  if (addend.row == nullptr && addend.matrix == nullptr) return addend.in_place;
  for (std::int64_t i = begin; i < end; ++i) {
    T const* const rows = addend.matrix + (addend.matrix != nullptr ? i * m : 0);
    if (addend.row == nullptr || addend.matrix == nullptr) {
      std::copy_n(addend.row != nullptr ? addend.row : rows, m, c + i * m);
    } else {
      transform_row<T>(
          c + i * m, m, [](auto x, auto y) { return x + y; }, addend.row, rows);
    }
  }
  return true;
}

template <class T>
Matrix<T> from_row(Matrix<T> a, std::int64_t begin) {
  a.data += a.transposed ? begin : begin * a.leading;
  return a;
}

template <class T>
Matrix<T> from_column(Matrix<T> b, std::int64_t begin) {
  b.data += b.transposed ? begin * b.leading : begin;
  return b;
}

/// One row; f is what is done to each element as it is read.
template <class T, class F>
void gemv(std::int64_t m, std::int64_t k, T alpha, T const* a, Matrix<T> const& b, T beta, T* c, F const& f) {
  if (b.transposed) {
    row_times_transposed(m, k, alpha, a, b.data, b.leading, beta, c, f);
  } else {
    row_times(m, k, alpha, a, b.data, b.leading, beta, c, f);
  }
}

/// gemm() of factors as they are, whatever products().bfloat16 says.
template <class T>
void exact_gemm(std::int64_t n, std::int64_t m, std::int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, std::int64_t leading_c) {
  if (n == 0 || m == 0) return;
  if (k == 0) return scale_rows(n, m, beta, c, leading_c);  // the libraries leave C as it is
  if (n == 1 && (!a.transposed || a.leading == 1)) return gemv(m, k, alpha, a.data, b, beta, c, [](auto x) { return x; });
  if constexpr (std::is_same_v<T, float>) {
    if (tiles_are_faster(n, m, k, a, b)) return tiled_gemm(n, m, k, alpha, a, b, beta, c, leading_c);
    if (products().library == Products::Library::onednn && onednn_is_faster(n, m, k))
      return onednn_gemm(n, m, k, alpha, a, b, beta, c, leading_c);
  }
  cxxblas::gemm<Index>(cxxblas::RowMajor, a.transposed ? cxxblas::Trans : cxxblas::NoTrans,
                       b.transposed ? cxxblas::Trans : cxxblas::NoTrans, index(n), index(m), index(k), alpha, a.data, index(a.leading),
                       b.data, index(b.leading), beta, c, index(leading_c));
}

/// parallel_gemm() of factors as they are; n > 1.
template <class T>
void parallel_exact_gemm(std::int64_t n, std::int64_t m, std::int64_t k, Matrix<T> a, Matrix<T> b, T* c, Addend<T> addend,
                         RowSum<T>& sums) {
  if constexpr (std::is_same_v<T, float>) {
    if (tiles_are_faster((n + threads() - 1) / threads(), m, k, a, b))
      return parallel_tiled_gemm(n, m, k, a, b, c, addend, sums.asked() ? &sums : nullptr);
  }
  parallel_for(
      n, fused_cost * static_cast<double>(m) * static_cast<double>(k),
      [&](std::int64_t begin, std::int64_t end) {
        T const beta = put_addend(addend, begin, end, m, c) ? T(1) : T(0);
        exact_gemm<T>(end - begin, m, k, 1, from_row(a, begin), b, beta, c + begin * m, m);
        sums.add_rows(begin, end, a);
      },
      sums.piece());
}

}  // namespace

bool bfloat16_is_slower() {
  static bool const slower = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;  // __builtin_cpu_supports() of clang 14 has no avx512fp16, which came with Sapphire Rapids
    bool const avx512fp16 = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 23 & 1) != 0;
    return !has_amx() && __builtin_cpu_is("intel") && avx512fp16;
  }();
  return slower;
}

template <class T>
void gemm(std::int64_t n, std::int64_t m, std::int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, std::int64_t leading_c) {
  detail::count_product_flops(2 * n * m * k);
  if constexpr (std::is_same_v<T, float>) {
    if (products().bfloat16 && n * m * k > 0) {
      bool const row = n == 1 && (!a.transposed || a.leading == 1);
      if (row) return gemv(m, k, alpha, a.data, b, beta, c, [](auto x) { return rounded_to_bfloat16(x); });
      if (has_amx()) return amx_gemm(n, m, k, alpha, a, b, beta, c, leading_c);
      if (bfloat16_is_slower())
        return exact_gemm(n, m, k, alpha, rounded(a, n, k, scratch<float>(0, n * k)), rounded(b, k, m, scratch<float>(1, k * m)), beta, c,
                          leading_c);
      return onednn_gemm(n, m, k, alpha, rounded(a, n, k, scratch<BFloat16>(0, n * k)), rounded(b, k, m, scratch<BFloat16>(1, k * m)), beta,
                         c, leading_c);
    }
  }
  exact_gemm(n, m, k, alpha, a, b, beta, c, leading_c);
}

template <class T>
void parallel_gemm(std::int64_t n, std::int64_t m, std::int64_t k, Matrix<T> a, Matrix<T> b, T* c, Addend<T> addend, T* sum) {
  bool const rounds = std::is_same_v<T, float> && products().bfloat16 && n * m * k > 0;
  RowSum<T> sums(n, k, sum, rounds && has_amx() ? amx_rows : tile_rows);
  if (n == 1) {  // a single row is cut by columns; what it costs is to read b, from the third cache
    T const beta = put_addend(addend, 0, 1, m, c) ? T(1) : T(0);
    double const column_cost = 0.05 * static_cast<double>(static_cast<std::int64_t>(sizeof(T)) * k);
    sums.add_rows(0, 1, a);
    return parallel_for(
        m, column_cost,
        [&](std::int64_t begin, std::int64_t end) { gemm<T>(1, end - begin, k, 1, a, from_column(b, begin), beta, c + begin, m); }, 16);
  }
  detail::count_product_flops(2 * n * m * k);
  if constexpr (std::is_same_v<T, float>) {
    if (rounds && has_amx()) return parallel_amx_gemm(n, m, k, a, b, c, addend, sums.asked() ? &sums : nullptr);
    if (rounds && bfloat16_is_slower()) {
      if (sums.asked())
        parallel_for(
            n, 0.1 * static_cast<double>(k), [&](std::int64_t begin, std::int64_t end) { sums.add_rows(begin, end, a); }, sums.piece());
      Buffer const left(static_cast<std::size_t>(n * k) * sizeof(float)), right(static_cast<std::size_t>(k * m) * sizeof(float));
      RowSum<float> none(n, k, nullptr, tile_rows);
      return parallel_exact_gemm(n, m, k, rounded(a, n, k, reinterpret_cast<float*>(left.data())),
                                 rounded(b, k, m, reinterpret_cast<float*>(right.data())), c, addend, none);
    }
    if (rounds) {  // the right factor is rounded once for all threads
      Buffer const room(static_cast<std::size_t>(k * m) * sizeof(BFloat16));
      auto const right = rounded(b, k, m, reinterpret_cast<BFloat16*>(room.data()));
      return parallel_for(
          n, fused_cost / 2 * static_cast<double>(m) * static_cast<double>(k),
          [&](std::int64_t begin, std::int64_t end) {
            float const beta = put_addend(addend, begin, end, m, c) ? 1 : 0;
            auto const left = rounded(from_row(a, begin), end - begin, k, scratch<BFloat16>(0, (end - begin) * k));
            onednn_gemm(end - begin, m, k, 1, left, right, beta, c + begin * m, m);
            sums.add_rows(begin, end, a);
          },
          sums.piece());
    }
  }
  parallel_exact_gemm(n, m, k, a, b, c, addend, sums);
}

template void gemm(std::int64_t, std::int64_t, std::int64_t, float, Matrix<float>, Matrix<float>, float, float*, std::int64_t);
template void gemm(std::int64_t, std::int64_t, std::int64_t, double, Matrix<double>, Matrix<double>, double, double*, std::int64_t);
template void parallel_gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<float>, Matrix<float>, float*, Addend<float>, float*);
template void parallel_gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<double>, Matrix<double>, double*, Addend<double>, double*);

}  // namespace heed::kernels
