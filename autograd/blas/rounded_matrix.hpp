#pragma once

#include <cstdint>

#include "autograd/memory.hpp"

namespace heed::kernels {

/// A matrix B [m, k] that is rounded to bfloat16 once and multiplied by many rows: what a weight is while tokens are decoded. A row's
/// product is as fast as the matrix can be read, so half the bytes are half the time.
class RoundedMatrix {
 public:
  /// Copies b [m, k], contiguous.
  RoundedMatrix(float const* b, std::int64_t m, std::int64_t k);

  /// c [m] = B · round(a) + bias + residual, a [k], on the pool; bias and residual [m] may be null. The bits of parallel_gemm() with a
  /// factor b that is transposed, in bfloat16.
  void times(float const* a, float const* bias, float const* residual, float* c) const;

 private:
  std::int64_t m_, k_;
  std::int64_t row_;  ///< words of a row
  Buffer words_;      ///< [m, row]: in word i of each batch of words the numbers i (lower half) and i + lanes (upper) of two batches
};

}  // namespace heed::kernels
