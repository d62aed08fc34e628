#include "autograd/kernels/gemm_onednn.hpp"

#include <bit>

#include <fmt/format.h>
#include <immintrin.h>
#include <oneapi/dnnl/dnnl.h>

#include "autograd/error.hpp"

// Exported by the library, but only its own tests declare it.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                                               std::uint16_t const* a, dnnl_dim_t lda, std::uint16_t const* b, dnnl_dim_t ldb, float beta,
                                               float* c, dnnl_dim_t ldc);

namespace heed::kernels {

namespace {

/// Multiply-adds below which a product is not worth what these kernels do before they begin.
constexpr std::int64_t worth_its_preparation = 1 << 20;

char letter(bool transposed) { return transposed ? 'T' : 'N'; }

void expect_success(dnnl_status_t status, std::int64_t n, std::int64_t m, std::int64_t k) {
  if (status != dnnl_success)
    throw Error(fmt::format("oneDNN: the product [{}, {}] x [{}, {}] failed with status {}", n, k, k, m, static_cast<int>(status)));
}

BFloat16 rounded(float x) {
  auto const bits = std::bit_cast<std::uint32_t>(x);
  auto const nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet_nan = bits >> 16 | 0x40;
  return static_cast<BFloat16>((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : nearest);
}

void round_row(float const* x, std::int64_t n, BFloat16* out) {
  std::int64_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16) {  // the compiler's own way with 16-bit numbers takes twice as long
    __m512 const numbers = _mm512_loadu_ps(x + i);
    __m512i const bits = _mm512_castps_si512(numbers), high = _mm512_srli_epi32(bits, 16);
    __m512i const odd = _mm512_and_epi32(high, _mm512_set1_epi32(1));
    __m512i const nearest = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
    __mmask16 const nan = _mm512_cmp_ps_mask(numbers, numbers, _CMP_UNORD_Q);
    __m512i const result = _mm512_mask_or_epi32(nearest, nan, high, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_cvtepi32_epi16(result));
  }
#endif
  for (; i < n; ++i) out[i] = rounded(x[i]);
}

}  // namespace

std::string onednn_version() {
  auto const* const version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

bool onednn_is_faster(std::int64_t n, std::int64_t m, std::int64_t k) {
  // On Zen 4, one thread, GFLOP/s of OpenBLAS's Cooperlake kernels / oneDNN 2.6:
  //   [64, 32] x [32, 64]       80 /  72      [768, 128] x [128, 128]     102 / 108
  //   [64, 64] x [64, 256]      89 / 105      [768, 128] x [128, 65]       95 /  88
  //   [64, 256] x [256, 64]     97 / 105      [65, 768] x [768, 128]       95 / 113
  //   [512, 64] x [64, 64]      96 / 100      [2048, 384] x [384, 1536]   101 / 111
  return n * m * k >= worth_its_preparation && m % 16 == 0;
}

void onednn_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<float> a, Matrix<float> b, float beta, float* c,
                 std::int64_t leading_c) {
  expect_success(
      dnnl_sgemm(letter(a.transposed), letter(b.transposed), n, m, k, alpha, a.data, a.leading, b.data, b.leading, beta, c, leading_c), n,
      m, k);
}

void round_to_bfloat16(float const* x, std::int64_t leading, std::int64_t rows, std::int64_t columns, BFloat16* out) {
  if (leading == columns) columns *= rows, rows = 1;
  for (std::int64_t r = 0; r < rows; ++r) round_row(x + r * leading, columns, out + r * columns);
}

void onednn_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<BFloat16> a, Matrix<BFloat16> b, float beta, float* c,
                 std::int64_t leading_c) {
  expect_success(dnnl_gemm_bf16bf16f32(letter(a.transposed), letter(b.transposed), n, m, k, alpha, a.data, a.leading, b.data, b.leading,
                                       beta, c, leading_c),
                 n, m, k);
}

}  // namespace heed::kernels
