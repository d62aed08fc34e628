// All matrix products: float32 by own kernels, float64 by OpenBLAS through xtensor-blas's cxxblas (linalg::dot may go wrong on views).

#include "autograd/blas/gemm.hpp"

#include <algorithm>
#include <complex>
#include <optional>
#include <type_traits>

#include <xflens/cxxblas/cxxblas.cxx>
#include <xtensor-blas/xblas_config.hpp>

#include "autograd/blas/products.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/parallel.hpp"
#include "autograd/processor/processor.hpp"

namespace heed::kernels {

namespace {

// Float32, on an AMD Zen 5 (Debian 12), one thread, from [32, 32] x [32, 32]ᵀ to [1024, 1024]ᵀ x [1024, 4096]: our kernels make 92 to 124
// GFLOP/s with AVX2 and 176 to 239 with AVX-512, OpenBLAS 0.3.21's 80 to 118 (Haswell's) and 109 to 247 (Cooperlake's); least of all in
// products of few rows, [16, 512] x [512, 512]: 93 and 231 against 80 and 109.

/// Rows of C that are computed together: pieces of this size have no remainder.
constexpr Index tile_rows = 24, amx_rows = 32;

/// Nanoseconds of a multiply-add, roughly: half of one at 100 GFLOP/s.
constexpr double fused_cost = 0.02;

template <class T>
void scale_rows(Index n, Index m, T beta, T* c, Index leading_c) {
  for (Index i = 0; i < n; ++i)
    std::transform(c + i * leading_c, c + i * leading_c + m, c + i * leading_c, [&](T x) { return beta == 0 ? T(0) : beta * x; });
}

/// Rows [begin, end) of the addend into C; false if there is none.
template <class T>
bool put_addend(Addend<T> const& addend, Index begin, Index end, Index m, T* c) {
  if (addend.row == nullptr && addend.matrix == nullptr) return addend.in_place;
  for (Index i = begin; i < end; ++i) {
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

// A row times a matrix: the product of decoding one token. Limited by memory bandwidth, unlike OpenBLAS's.

/// sums[r] = Σ_i f(a[i]) f(b[r · apart + i]), in an order that does not depend on `rows`. Memory is prefetched 2 KB ahead of each row (into
/// the next row where rows are short), because the processor's own prefetching stops at page boundaries.
template <Index rows, class T, class F>
void dot_rows(Index k, T const* a, T const* b, Index apart, T* sums, F const& f) {
  constexpr Index step = 2 * lanes<T>, line = 64 / sizeof(T), ahead = 2048 / sizeof(T);
  Lanes<T> even[rows], odd[rows];
  for (Index r = 0; r < rows; ++r) even[r] = odd[r] = Lanes<T>(T(0));
  Index i = 0;
  for (; i + step <= k; i += step) {
    Lanes<T> const x = f(Lanes<T>::load_unaligned(a + i)), y = f(Lanes<T>::load_unaligned(a + i + lanes<T>));
    for (Index r = 0; r < rows; ++r) {
      T const* const from = b + r * apart + i;
      for (Index next = ahead; next < ahead + step; next += line) __builtin_prefetch(from + next);
      even[r] = xsimd::fma(x, f(Lanes<T>::load_unaligned(from)), even[r]);
      odd[r] = xsimd::fma(y, f(Lanes<T>::load_unaligned(from + lanes<T>)), odd[r]);
    }
  }
  for (; i < k; i += lanes<T>) {
    Index const count = std::min(lanes<T>, k - i);
    Lanes<T> const x = f(load_some<T>(a + i, count, T(0)));
    for (Index r = 0; r < rows; ++r) even[r] = xsimd::fma(x, f(load_some<T>(b + r * apart + i, count, T(0))), even[r]);
  }
  for (Index r = 0; r < rows; ++r) sums[r] = lane_sum(even[r] + odd[r]);
}

/// c[j] = alpha · Σ_i f(a[i]) f(b[j, i]) + beta · c[j], for b [m, k] with a leading dimension. f: batch → batch. b is cut into `streams`
/// parts, and one row of each part is read at a time.
template <Index streams, class T, class F>
void row_times_streams(Index m, Index k, T alpha, T const* a, T const* b, Index leading, T beta, T* c, F const& f) {
  Index const part = m / streams;
  auto const put = [&](Index j, T sum) { c[j] = alpha * sum + (beta == 0 ? T(0) : beta * c[j]); };
  T sums[streams];
  for (Index j = 0; j < part; ++j) {
    dot_rows<streams>(k, a, b + j * leading, part * leading, sums, f);
    for (Index r = 0; r < streams; ++r) put(r * part + j, sums[r]);
  }
  for (Index j = part * streams; j < m; ++j) {
    dot_rows<1>(k, a, b + j * leading, 0, sums, f);
    put(j, sums[0]);
  }
}

/// The same, with the number of streams chosen by the matrix's size. From the third-level cache two streams are 1.3 times as fast as one,
/// and more are no faster; from memory eight are 1.1 to 1.15 times as fast as two, since the processor prefetches each stream.
template <class T, class F>
void row_times_transposed(Index m, Index k, T alpha, T const* a, T const* b, Index leading, T beta, T* c, F const& f) {
  constexpr Index large = 256 * 1024 / sizeof(T);
  if (m * k <= large) return row_times_streams<2>(m, k, alpha, a, b, leading, beta, c, f);
  constexpr Index streams = sizeof(Lanes<T>) == 64 ? 8 : 4;  // each with two sums in registers
  row_times_streams<streams>(m, k, alpha, a, b, leading, beta, c, f);
}

/// c[j] = alpha · Σ_i f(a[i]) f(b[i, j]) + beta · c[j], for b [k, m] with a leading dimension.
template <class T, class F>
void row_times(Index m, Index k, T alpha, T const* a, T const* b, Index leading, T beta, T* c, F const& f) {
  Lanes<T> const factor(alpha), old(beta);
  auto const mixed = [&](Lanes<T> const& sum, Lanes<T> const& before) {
    return beta == 0 ? factor * sum : xsimd::fma(old, before, factor * sum);
  };
  constexpr Index together = 4;  // batches of columns, each with its own accumulator
  constexpr Index step = together * lanes<T>;
  Index j = 0;
  for (; j + step <= m; j += step) {
    Lanes<T> sums[together] = {Lanes<T>(T(0)), Lanes<T>(T(0)), Lanes<T>(T(0)), Lanes<T>(T(0))};
    for (Index i = 0; i < k; ++i) {
      Lanes<T> const x = f(Lanes<T>(a[i]));
      T const* const row = b + i * leading + j;
      for (Index r = 0; r < together; ++r) sums[r] = xsimd::fma(x, f(Lanes<T>::load_unaligned(row + r * lanes<T>)), sums[r]);
    }
    for (Index r = 0; r < together; ++r) {
      T* const out = c + j + r * lanes<T>;
      mixed(sums[r], Lanes<T>::load_unaligned(out)).store_unaligned(out);
    }
  }
  for (; j < m; j += lanes<T>) {
    Index const count = std::min(lanes<T>, m - j);
    bool const whole = count == lanes<T>;
    auto const load = [&](T const* from) { return whole ? Lanes<T>::load_unaligned(from) : load_some<T>(from, count, T(0)); };
    Lanes<T> sum(T(0));
    for (Index i = 0; i < k; ++i) sum = xsimd::fma(f(Lanes<T>(a[i])), f(load(b + i * leading + j)), sum);
    Lanes<T> const result = mixed(sum, load(c + j));
    if (whole) {
      result.store_unaligned(c + j);
    } else {
      store_some<T>(result, c + j, count);
    }
  }
}

/// A vector times a matrix, if the product is one: C is a single row or, contiguous, a single column, and the vector has no gaps.
template <class T>
struct VectorProduct {
  T const* vector;
  Index outputs;
  Matrix<T> matrix;  ///< [k, outputs]
};
template <class T>
std::optional<VectorProduct<T>> as_vector_product(Index n, Index m, Matrix<T> const& a, Matrix<T> const& b, Index leading_c) {
  if (n == 1 && (!a.transposed || a.leading == 1)) return VectorProduct<T>{a.data, m, b};
  if (m == 1 && (b.transposed || b.leading == 1) && leading_c == 1) return VectorProduct<T>{b.data, n, {a.data, a.leading, !a.transposed}};
  return {};
}

/// c [outputs] = alpha · vector · matrix + beta · c, in columns [begin, end).
template <class T>
void gemv(Index k, T alpha, VectorProduct<T> const& v, Index begin, Index end, T beta, T* c) {
  auto const multiply = [&](auto const& rounding) {
    auto const& x = v.matrix;
    if (x.transposed) {
      row_times_transposed(end - begin, k, alpha, v.vector, x.data + begin * x.leading, x.leading, beta, c + begin, rounding);
    } else {
      row_times(end - begin, k, alpha, v.vector, x.data + begin, x.leading, beta, c + begin, rounding);
    }
  };
  if constexpr (std::is_same_v<T, float>) {
    if (products().bfloat16) return multiply([](auto x) { return rounded_to_bfloat16(x); });
  }
  multiply([](auto x) { return x; });
}

/// Calls f(element) with the element type (elements.hpp) of float32 products without AMX. `InPairs` is a parameter, because Pairs is
/// incomplete on processors without instructions for pairs.
template <class F, class InPairs = BFloat16Pairs>
void with_element(F const& f) {
  if (!products().bfloat16) return f(Numbers());
  if constexpr (has_pairs) {
    if (!bfloat16_is_slower()) return f(InPairs());
  }
  f(Rounded());
}

bool by_amx() { return products().bfloat16 && has_amx(); }

}  // namespace

bool bfloat16_is_slower() {
  static bool const slower = !has_amx() && processor_is_intel() && processor_has("AVX512_FP16");  // since Sapphire Rapids
  return slower;
}

template <class T>
void openblas_gemm(Index n, Index m, Index k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, Index leading_c) {
  keep_library_single_threaded();
  using BlasIndex = BLAS_IDX;
  auto const index = [](Index i) { return static_cast<BlasIndex>(i); };
  auto const order = [](Matrix<T> const& x) { return x.transposed ? cxxblas::Trans : cxxblas::NoTrans; };
  cxxblas::gemm<BlasIndex>(cxxblas::RowMajor, order(a), order(b), index(n), index(m), index(k), alpha, a.data, index(a.leading), b.data,
                           index(b.leading), beta, c, index(leading_c));
}

template <class T>
void gemm(Index n, Index m, Index k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c, Index leading_c) {
  if (n == 0 || m == 0) return;
  if (k == 0) return scale_rows(n, m, beta, c, leading_c);
  count_product_flops(2 * n * m * k);
  if (auto const vector = as_vector_product(n, m, a, b, n == 1 ? 1 : leading_c))
    return gemv(k, alpha, *vector, 0, vector->outputs, beta, c);
  if constexpr (std::is_same_v<T, float>) {
    ProductFactors const factors{n, m, k, a, b};
    ProductResult const result{alpha, beta, c, leading_c};
    if (by_amx()) return amx_gemm(factors, result);
    with_element([&](auto element) { tiled_gemm<decltype(element)>(factors, result); });
  } else {
    openblas_gemm(n, m, k, alpha, a, b, beta, c, leading_c);
  }
}

template <class T>
void parallel_gemm(Index n, Index m, Index k, Matrix<T> a, Matrix<T> b, T* c, Addend<T> addend, T* sum) {
  RowSum<T> sums(n, k, sum, std::is_same_v<T, float> && by_amx() ? amx_rows : tile_rows);
  if (n == 0 || m == 0) return sums.add_rows(0, n, a);
  if (k == 0) {
    if (!put_addend(addend, 0, n, m, c)) std::fill_n(c, n * m, T(0));
    return;
  }
  count_product_flops(2 * n * m * k);
  if (auto const vector = as_vector_product(n, m, a, b, 1)) {  // its cost is reading the matrix, from the third-level cache
    T const beta = put_addend(addend, 0, n, m, c) ? T(1) : T(0);
    sums.add_rows(0, n, a);
    double const cost = 0.05 * static_cast<double>(static_cast<Index>(sizeof(T)) * k);
    return parallel_for(
        vector->outputs, cost, [&](Index begin, Index end) { gemv(k, T(1), *vector, begin, end, beta, c); }, 16);
  }
  if constexpr (std::is_same_v<T, float>) {
    ProductFactors const factors{n, m, k, a, b};
    ProductResult const result{1, addend.in_place ? 1.0F : 0.0F, c, m, addend, sum != nullptr ? &sums : nullptr};
    if (by_amx()) return parallel_amx_gemm(factors, result);
    with_element([&](auto element) { parallel_tiled_gemm<decltype(element)>(factors, result); });
  } else {
    // The pieces depend on n alone, because a library may choose its kernels, and thereby its rounding, by the number of rows.
    constexpr Index max_pieces = 16;
    Index const piece = parts(std::max<Index>(4 * tile_rows, parts(n, max_pieces)), sums.stretch()) * sums.stretch();
    parallel_each(parts(n, piece), fused_cost * static_cast<double>(m * k) * static_cast<double>(piece), [&](Index i) {
      Index const begin = i * piece, end = std::min(n, begin + piece);
      T const beta = put_addend(addend, begin, end, m, c) ? T(1) : T(0);
      Matrix<T> const rows{a.data + (a.transposed ? begin : begin * a.leading), a.leading, a.transposed};
      openblas_gemm<T>(end - begin, m, k, 1, rows, b, beta, c + begin * m, m);
      sums.add_rows(begin, end, a);
    });
  }
}

template void openblas_gemm(Index, Index, Index, float, Matrix<float>, Matrix<float>, float, float*, Index);
template void openblas_gemm(Index, Index, Index, double, Matrix<double>, Matrix<double>, double, double*, Index);
template void gemm(Index, Index, Index, float, Matrix<float>, Matrix<float>, float, float*, Index);
template void gemm(Index, Index, Index, double, Matrix<double>, Matrix<double>, double, double*, Index);
template void parallel_gemm(Index, Index, Index, Matrix<float>, Matrix<float>, float*, Addend<float>, float*);
template void parallel_gemm(Index, Index, Index, Matrix<double>, Matrix<double>, double*, Addend<double>, double*);

}  // namespace heed::kernels
