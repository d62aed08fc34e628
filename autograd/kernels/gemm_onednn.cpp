#include "autograd/kernels/gemm_onednn.hpp"

#include <algorithm>
#include <bit>
#include <compare>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <immintrin.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "autograd/error.hpp"

// Exported by the library, but only its own tests declare it.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                                               std::uint16_t const* a, dnnl_dim_t lda, std::uint16_t const* b, dnnl_dim_t ldb, float beta,
                                               float* c, dnnl_dim_t ldc);

namespace heed::kernels {

namespace {

/// Multiply-adds below which a product is not worth what these kernels do before they begin.
constexpr std::int64_t worth_its_preparation = 1 << 20, worth_tiles = 1 << 17;

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

bool has_tiles() {
  static bool const here = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
  return here;
}

/// C ← alpha A B + beta C of one shape on AMX's tiles; C is contiguous, for other ones the library takes another way. The library's
/// function for products knows tiles as well, but sums in a place of its own from which scalar code adds to C: on a Sapphire Rapids,
/// GFLOP/s of that function / of this, one thread:
///   [768, 128] x [128, 512]  280 / 640      [2048, 384] x [384, 384]  250 – 450 / 790 – 810
class TiledProduct {
 public:
  struct Shape {
    std::int64_t n, m, k, leading_a, leading_b;
    bool transpose_a, transpose_b;
    float alpha, beta;
    auto operator<=>(Shape const&) const = default;
  };

  explicit TiledProduct(Shape const& s)
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        a_(described(s.n, s.k, s.leading_a, s.transpose_a, dnnl::memory::data_type::bf16), engine_, nullptr),
        b_(described(s.k, s.m, s.leading_b, s.transpose_b, dnnl::memory::data_type::bf16), engine_, nullptr),
        c_(described(s.n, s.m, s.m, false, dnnl::memory::data_type::f32), engine_, nullptr) {
    dnnl::primitive_attr settings;
    dnnl::post_ops then;
    if (s.beta != 0) then.append_sum(s.beta);
    settings.set_post_ops(then);
    if (s.alpha != 1) settings.set_output_scales(0, {s.alpha});
    product_ = dnnl::matmul({{a_.get_desc(), b_.get_desc(), c_.get_desc()}, settings, engine_});
  }

  void operator()(BFloat16 const* a, BFloat16 const* b, float* c) {
    a_.set_data_handle(const_cast<BFloat16*>(a));
    b_.set_data_handle(const_cast<BFloat16*>(b));
    c_.set_data_handle(c);
    product_.execute(stream_, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}});
  }

 private:
  static dnnl::memory::desc described(std::int64_t rows, std::int64_t columns, std::int64_t leading, bool transposed,
                                      dnnl::memory::data_type type) {
    return {{rows, columns}, type, transposed ? dnnl::memory::dims{1, leading} : dnnl::memory::dims{leading, 1}};
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::memory a_, b_, c_;
  dnnl::matmul product_;
};

/// This thread's, made when a shape is first seen: the library compiles it then, which takes about a millisecond.
TiledProduct& tiled_product(TiledProduct::Shape const& shape) {
  thread_local std::map<TiledProduct::Shape, TiledProduct> made;
  constexpr std::size_t most = 1024;  // where lengths vary without end
  if (made.size() >= most && !made.contains(shape)) made.clear();
  return made.try_emplace(shape, shape).first->second;
}

/// This thread's room for a product.
float* scratch(std::int64_t elements) {
  thread_local std::vector<float> room;
  if (std::ssize(room) < elements) room.resize(static_cast<std::size_t>(elements));
  return room.data();
}

void tiled_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<BFloat16> a, Matrix<BFloat16> b, float beta, float* c,
                std::int64_t leading_c) {
  TiledProduct::Shape shape{n, m, k, a.leading, b.leading, a.transposed, b.transposed, alpha, beta};
  if (leading_c == m) return tiled_product(shape)(a.data, b.data, c);
  shape.beta = 0;
  float* const product = scratch(n * m);
  tiled_product(shape)(a.data, b.data, product);
  for (std::int64_t i = 0; i < n; ++i) {
    float const* const from = product + i * m;
    float* const to = c + i * leading_c;
    if (beta == 0) {
      std::copy_n(from, m, to);
    } else {
      for (std::int64_t j = 0; j < m; ++j) to[j] = beta * to[j] + from[j];
    }
  }
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
  if (n * m * k >= worth_tiles && has_tiles()) return tiled_gemm(n, m, k, alpha, a, b, beta, c, leading_c);
  expect_success(dnnl_gemm_bf16bf16f32(letter(a.transposed), letter(b.transposed), n, m, k, alpha, a.data, a.leading, b.data, b.leading,
                                       beta, c, leading_c),
                 n, m, k);
}

}  // namespace heed::kernels
