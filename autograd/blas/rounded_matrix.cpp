#include "autograd/blas/elements.hpp"
#include "autograd/blas/gemm.hpp"
#include "autograd/blas/products.hpp"
#include "autograd/parallel.hpp"

namespace heed::kernels {

namespace {

using Bits = xsimd::batch<std::uint32_t>;
constexpr Index L = lanes<float>, step = 2 * L;  // numbers in a batch of words
constexpr Index streams = 4;                     // rows that are read at once
constexpr Index ahead = 512;                     // words: prefetched: 2 KB before they are read

Lanes<float> lower(Bits const& words) { return bits_as<float>(words << 16); }
Lanes<float> upper(Bits const& words) { return bits_as<float>(words & Bits(0xffff0000)); }

/// A batch of a row of n numbers from `at` on, rounded; zeros beyond its end.
Lanes<float> rounded_batch(float const* row, Index at, Index n) {
  if (at >= n) return Lanes<float>(0.0F);
  return rounded_to_bfloat16(at + L <= n ? Lanes<float>::load_unaligned(row + at) : load_some<float>(row + at, n - at, 0.0F));
}

/// sums[r] = Σ_i a[i] b[r · apart + i], in the order of dot_rows() (gemm.cpp), whose two sums these are.
template <Index rows>
void dot_words(Index k, float const* a, std::uint32_t const* b, Index apart, float* sums) {
  Lanes<float> even[rows], odd[rows];
  for (Index r = 0; r < rows; ++r) even[r] = odd[r] = Lanes<float>(0.0F);
  Index i = 0;
  for (; i + step <= k; i += step) {
    auto const x = Lanes<float>::load_aligned(a + i), y = Lanes<float>::load_aligned(a + i + L);
    for (Index r = 0; r < rows; ++r) {
      auto const words = Bits::load_aligned(b + r * apart + i / 2);
      __builtin_prefetch(b + r * apart + i / 2 + ahead);
      even[r] = xsimd::fma(x, lower(words), even[r]);
      odd[r] = xsimd::fma(y, upper(words), odd[r]);
    }
  }
  if (i < k) {  // zeros behind the last number
    auto const x = Lanes<float>::load_aligned(a + i), y = Lanes<float>::load_aligned(a + i + L);
    for (Index r = 0; r < rows; ++r) {
      auto const words = Bits::load_aligned(b + r * apart + i / 2);
      even[r] = xsimd::fma(y, upper(words), xsimd::fma(x, lower(words), even[r]));
    }
  }
  for (Index r = 0; r < rows; ++r) sums[r] = lane_sum(even[r] + odd[r]);
}

}  // namespace

RoundedMatrix::RoundedMatrix(float const* b, Index m, Index k)
    : m_(m), k_(k), row_((k + step - 1) / step * L), words_(static_cast<std::size_t>(m * row_) * sizeof(std::uint32_t)) {
  auto* const words = reinterpret_cast<std::uint32_t*>(words_.data());
  auto const round_row = [&](Index j) {
    auto const bits = [&](Index at) { return bits_as<std::uint32_t>(rounded_batch(b + j * k, at, k)); };
    for (Index i = 0; i < k; i += step) ((bits(i) >> 16) | bits(i + L)).store_aligned(words + j * row_ + i / 2);
  };
  parallel_each(m, 0.2 * static_cast<double>(k), round_row, Cut::whole);
}

void RoundedMatrix::times(float const* a, float const* bias, float const* residual, float* c) const {
  count_product_flops(2 * m_ * k_);
  Buffer const room(static_cast<std::size_t>(2 * row_) * sizeof(float));
  auto* const rounded = reinterpret_cast<float*>(room.data());
  for (Index i = 0; i < 2 * row_; i += L) rounded_batch(a, i, k_).store_aligned(rounded + i);
  auto const* const words = reinterpret_cast<std::uint32_t const*>(words_.data());
  auto const put = [&](Index j, float sum) {
    c[j] = sum + ((bias != nullptr ? bias[j] : 0.0F) + (residual != nullptr ? residual[j] : 0.0F));
  };
  double const column_cost = 0.1 * static_cast<double>(k_);
  parallel_for(
      m_, column_cost,
      [&](Index begin, Index end) {
        Index const part = (end - begin) / streams;
        float sums[streams];
        for (Index j = begin; j < begin + part; ++j) {
          dot_words<streams>(k_, rounded, words + j * row_, part * row_, sums);
          for (Index r = 0; r < streams; ++r) put(j + r * part, sums[r]);
        }
        for (Index j = begin + streams * part; j < end; ++j) {
          dot_words<1>(k_, rounded, words + j * row_, 0, sums);
          put(j, sums[0]);
        }
      },
      16);
}

}  // namespace heed::kernels
