#include "autograd/kernels/bfloat16.hpp"

namespace heed::kernels {

namespace {

/// The upper halves of the first `count` numbers.
void store_upper(Lanes<float> const& x, std::int64_t count, BFloat16* out) {
  auto const halves = xsimd::bitwise_cast<xsimd::batch<std::uint32_t>>(x) >> 16;
#ifdef __AVX512F__
  if (count == lanes<float>)  // the compiler's own way with 16-bit numbers takes twice as long
    return _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtepi32_epi16(halves));
#endif
  alignas(64) std::uint32_t each[xsimd::batch<float>::size];
  halves.store_aligned(each);
  std::transform(each, each + count, out, [](std::uint32_t half) { return static_cast<BFloat16>(half); });
}

}  // namespace

void round_to_bfloat16(float const* x, std::int64_t leading, std::int64_t rows, std::int64_t columns, BFloat16* out) {
  if (leading == columns) columns *= rows, rows = 1;
  for (std::int64_t r = 0; r < rows; ++r) {
    float const* const row = x + r * leading;
    std::int64_t i = 0;
    for (; i + lanes<float> <= columns; i += lanes<float>)
      store_upper(rounded_to_bfloat16(Lanes<float>::load_unaligned(row + i)), lanes<float>, out + r * columns + i);
    if (i < columns) store_upper(rounded_to_bfloat16(load_some<float>(row + i, columns - i, 0.0F)), columns - i, out + r * columns + i);
  }
}

}  // namespace heed::kernels
