// The one place where matrices are multiplied: by OpenBLAS through xtensor-blas's interface, over pointers and leading dimensions only (its
// linalg::dot may take a wrong path on views), or by oneDNN.

#include "autograd/kernels/gemm.hpp"

#include <algorithm>
#include <complex>
#include <vector>

#include <xflens/cxxblas/cxxblas.cxx>
#include <xtensor-blas/xblas_config.hpp>

#include "autograd/kernels/gemm_onednn.hpp"
#include "autograd/memory.hpp"
#include "autograd/parallel.hpp"
#include "autograd/products.hpp"

namespace heed::kernels {

namespace {

using Index = BLAS_IDX;
Index index(std::int64_t i) { return static_cast<Index>(i); }

/// Nanoseconds of a multiply-add, roughly: half of one at 100 GFLOP/s.
constexpr double fused_cost = 0.02;

/// A factor of `rows` × `columns` (as the product sees it) in bfloat16, contiguous in `room`.
Matrix<BFloat16> rounded(Matrix<float> const& x, std::int64_t rows, std::int64_t columns, BFloat16* room) {
  if (x.transposed) std::swap(rows, columns);
  round_to_bfloat16(x.data, x.leading, rows, columns, room);
  return {room, columns, x.transposed};
}

/// This thread's room for a factor in bfloat16; which: 0 or 1.
BFloat16* scratch(std::size_t which, std::int64_t elements) {
  thread_local std::vector<BFloat16> rooms[2];
  auto& room = rooms[which];
  if (room.size() < static_cast<std::size_t>(elements)) room.resize(static_cast<std::size_t>(elements));
  return room.data();
}

template <class T>
void scale_rows(std::int64_t n, std::int64_t m, T beta, T* c, std::int64_t leading_c) {
  for (std::int64_t i = 0; i < n; ++i)
    std::transform(c + i * leading_c, c + i * leading_c + m, c + i * leading_c, [&](T x) { return beta == 0 ? T(0) : beta * x; });
}

/// Rows of C cut among the threads: part(begin, end).
template <class Part>
void by_rows(std::int64_t n, std::int64_t m, std::int64_t k, Part const& part) {
  parallel_for(n, fused_cost * static_cast<double>(m) * static_cast<double>(k), part, 8);
}

template <class T>
Matrix<T> from_row(Matrix<T> a, std::int64_t begin) {
  a.data += a.transposed ? begin : begin * a.leading;
  return a;
}

}  // namespace

template <class T>
void gemm(std::int64_t n, std::int64_t m, std::int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, std::int64_t leading_c) {
  if (n == 0 || m == 0) return;
  if (k == 0) return scale_rows(n, m, beta, c, leading_c);  // the libraries leave C as it is
  detail::count_product_flops(2 * n * m * k);
  if constexpr (std::is_same_v<T, float>) {
    if (products().bfloat16)
      return onednn_gemm(n, m, k, alpha, rounded(a, n, k, scratch(0, n * k)), rounded(b, k, m, scratch(1, k * m)), beta, c, leading_c);
    if (products().library == Products::Library::onednn && onednn_is_faster(n, m, k))
      return onednn_gemm(n, m, k, alpha, a, b, beta, c, leading_c);
  }
  cxxblas::gemm<Index>(cxxblas::RowMajor, a.transposed ? cxxblas::Trans : cxxblas::NoTrans,
                       b.transposed ? cxxblas::Trans : cxxblas::NoTrans, index(n), index(m), index(k), alpha, a.data, index(a.leading),
                       b.data, index(b.leading), beta, c, index(leading_c));
}

template <class T>
void parallel_gemm(std::int64_t n, std::int64_t m, std::int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c,
                   std::int64_t leading_c) {
  if constexpr (std::is_same_v<T, float>) {
    if (products().bfloat16 && n * m * k > 0) {  // the right factor is rounded once for all threads
      Buffer const room(static_cast<std::size_t>(k * m) * sizeof(BFloat16));
      auto const right = rounded(b, k, m, reinterpret_cast<BFloat16*>(room.data()));
      detail::count_product_flops(2 * n * m * k);
      return by_rows(n, m, k, [&](std::int64_t begin, std::int64_t end) {
        auto const left = rounded(from_row(a, begin), end - begin, k, scratch(0, (end - begin) * k));
        onednn_gemm(end - begin, m, k, alpha, left, right, beta, c + begin * leading_c, leading_c);
      });
    }
  }
  by_rows(n, m, k, [&](std::int64_t begin, std::int64_t end) {
    gemm(end - begin, m, k, alpha, from_row(a, begin), b, beta, c + begin * leading_c, leading_c);
  });
}

template void gemm(std::int64_t, std::int64_t, std::int64_t, float, Matrix<float>, Matrix<float>, float, float*, std::int64_t);
template void gemm(std::int64_t, std::int64_t, std::int64_t, double, Matrix<double>, Matrix<double>, double, double*, std::int64_t);
template void parallel_gemm(std::int64_t, std::int64_t, std::int64_t, float, Matrix<float>, Matrix<float>, float, float*, std::int64_t);
template void parallel_gemm(std::int64_t, std::int64_t, std::int64_t, double, Matrix<double>, Matrix<double>, double, double*,
                            std::int64_t);

}  // namespace heed::kernels
