// The one place where matrices are multiplied: xtensor-blas's interface to the BLAS, over pointers and leading dimensions only (its
// linalg::dot may take a wrong path on views).

#include "autograd/kernels/gemm.hpp"

#include <algorithm>
#include <complex>

#include <xflens/cxxblas/cxxblas.cxx>
#include <xtensor-blas/xblas_config.hpp>

#include "autograd/parallel.hpp"

namespace heed::kernels {

namespace {

using Index = BLAS_IDX;
Index index(std::int64_t i) { return static_cast<Index>(i); }

/// Nanoseconds of a multiply-add, roughly: half of one at 100 GFLOP/s.
constexpr double fused_cost = 0.02;

}  // namespace

template <class T>
void gemm(std::int64_t n, std::int64_t m, std::int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, std::int64_t leading_c) {
  if (n == 0 || m == 0) return;
  if (k == 0) {  // the BLAS leaves C as it is
    for (std::int64_t i = 0; i < n; ++i)
      std::transform(c + i * leading_c, c + i * leading_c + m, c + i * leading_c, [&](T x) { return beta == 0 ? T(0) : beta * x; });
    return;
  }
  cxxblas::gemm<Index>(cxxblas::RowMajor, a.transposed ? cxxblas::Trans : cxxblas::NoTrans,
                       b.transposed ? cxxblas::Trans : cxxblas::NoTrans, index(n), index(m), index(k), alpha, a.data, index(a.leading),
                       b.data, index(b.leading), beta, c, index(leading_c));
}

template <class T>
void parallel_gemm(std::int64_t n, std::int64_t m, std::int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c,
                   std::int64_t leading_c) {
  double const row_cost = fused_cost * static_cast<double>(m) * static_cast<double>(k);
  parallel_for(
      n, row_cost,
      [&](std::int64_t begin, std::int64_t end) {
        Matrix<T> part = a;
        part.data += a.transposed ? begin : begin * a.leading;
        gemm(end - begin, m, k, alpha, part, b, beta, c + begin * leading_c, leading_c);
      },
      8);
}

template void gemm(std::int64_t, std::int64_t, std::int64_t, float, Matrix<float>, Matrix<float>, float, float*, std::int64_t);
template void gemm(std::int64_t, std::int64_t, std::int64_t, double, Matrix<double>, Matrix<double>, double, double*, std::int64_t);
template void parallel_gemm(std::int64_t, std::int64_t, std::int64_t, float, Matrix<float>, Matrix<float>, float, float*, std::int64_t);
template void parallel_gemm(std::int64_t, std::int64_t, std::int64_t, double, Matrix<double>, Matrix<double>, double, double*,
                            std::int64_t);

}  // namespace heed::kernels
