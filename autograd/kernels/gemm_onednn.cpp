#include "autograd/kernels/gemm_onednn.hpp"

#include <fmt/format.h>
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

void onednn_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<BFloat16> a, Matrix<BFloat16> b, float beta, float* c,
                 std::int64_t leading_c) {
  expect_success(dnnl_gemm_bf16bf16f32(letter(a.transposed), letter(b.transposed), n, m, k, alpha, a.data, a.leading, b.data, b.leading,
                                       beta, c, leading_c),
                 n, m, k);
}

}  // namespace heed::kernels
