#pragma once

#include "autograd/index.hpp"
#include "autograd/kernels/rows.hpp"

namespace heed::kernels {

/// The result of a product from its sums: alpha · sum + beta · C + row + matrix.
struct Finish {
  using Batch = Lanes<float>;
  static constexpr Index L = lanes<float>;

  float alpha, beta;
  float const* row;     ///< of C's width; null: none
  float const* matrix;  ///< with C's leading dimension; null: none

  /// `count` ≤ L sums at c + offset, in column `column`.
  void some(Batch const& sum, float* c, Index column, Index offset, Index count) const {
    auto const load = [count](float const* x) { return load_some<float>(x, count, 0.0F); };
    Batch result = Batch(alpha) * sum;
    if (beta != 0) result = xsimd::fma(Batch(beta), load(c + offset), result);
    if (row != nullptr) result += load(row + column);
    if (matrix != nullptr) result += load(matrix + offset);
    store_some<float>(result, c + offset, count);
  }

  /// Whole batches: branches are taken once for a tile, whose sums stay in registers.
  template <int R, int batches>
  [[gnu::always_inline]] void all(Batch (&sums)[R][batches], float* c, Index leading, Index column) const {
    auto const each = [&](auto const& change) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int i = 0; i < batches; ++i) change(sums[r][i], r * leading + column + i * L, i);
      }
    };
    if (alpha != 1) each([factor = Batch(alpha)](Batch& sum, Index, int) { sum = factor * sum; });
    if (beta != 0)
      each([&, factor = Batch(beta)](Batch& sum, Index at, int) { sum = xsimd::fma(factor, Batch::load_unaligned(c + at), sum); });
    if (row != nullptr) {
      Batch more[batches];
      for (int i = 0; i < batches; ++i) more[i] = Batch::load_unaligned(row + column + i * L);
      each([&](Batch& sum, Index, int i) { sum += more[i]; });
    }
    if (matrix != nullptr) each([&](Batch& sum, Index at, int) { sum += Batch::load_unaligned(matrix + at); });
    each([&](Batch const& sum, Index at, int) { sum.store_unaligned(c + at); });
  }
};

}  // namespace heed::kernels
