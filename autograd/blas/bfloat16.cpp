#include "autograd/blas/bfloat16.hpp"

namespace heed::kernels {

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
