#pragma once

#include <algorithm>
#include <cstdint>

#include "autograd/kernels/gemm.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/kernels/transpose.hpp"

/// The copy of a product's right factor that tiles of sums read from end to end.
namespace heed::kernels {

/// panel[k, j] = x[j, k] for j < count ≤ L, 0 beyond; k < k_end. The next L rows are asked for.
inline void pack_transposed(float const* x, std::int64_t leading, std::int64_t count, std::int64_t k_end, float* panel,
                            std::int64_t panel_width) {
  constexpr std::int64_t L = lanes<float>;
  std::int64_t k = 0;
  for (; k + L <= k_end; k += L) {
    for (std::int64_t j = 0; j < L; ++j) __builtin_prefetch(x + (L + j) * leading + k);
    if (count == L) {
      transpose(x + k, leading, panel + k * panel_width, panel_width);
    } else {
      alignas(64) float rows[L * L] = {};
      for (std::int64_t j = 0; j < count; ++j) std::copy_n(x + j * leading + k, L, rows + j * L);
      transpose(rows, L, panel + k * panel_width, panel_width);
    }
  }
  for (; k < k_end; ++k)
    for (std::int64_t j = 0; j < L; ++j) panel[k * panel_width + j] = j < count ? x[j * leading + k] : 0.0F;
}

/// Panels of B's columns, [depth, panel_width] each: where they are, and from row to row of them. B's own rows do where they are read only
/// a few times.
struct Panels {
  float const* data;
  std::int64_t leading;  ///< from row to row of a panel
  std::int64_t next;     ///< from panel to panel
};

/// Copies rows [0, k_end) of `width` columns of B into panels, with zeros to the end of a batch.
inline Panels packed(Matrix<float> const& b, std::int64_t k_end, std::int64_t width, std::int64_t panel_width, float* room) {
  constexpr std::int64_t L = lanes<float>;
  constexpr std::int64_t rows_ahead = 4;  // asked for while one is copied
  std::int64_t const next = k_end * panel_width;
  auto const place = [&](std::int64_t column) { return room + column / panel_width * next + column % panel_width; };
  if (b.transposed) {
    for (std::int64_t column = 0; column < width; column += L)
      pack_transposed(b.data + column * b.leading, b.leading, std::min(L, width - column), k_end, place(column), panel_width);
    return {room, panel_width, next};
  }
  for (std::int64_t k = 0; k < k_end; ++k) {
    float const* const row = b.data + k * b.leading;
    std::int64_t column = 0;
    for (; column + L <= width; column += L) {
      if (k + rows_ahead < k_end) __builtin_prefetch(row + rows_ahead * b.leading + column);
      Lanes<float>::load_unaligned(row + column).store_aligned(place(column) + k * panel_width);
    }
    if (column < width) load_some<float>(row + column, width - column, 0.0F).store_aligned(place(column) + k * panel_width);
  }
  return {room, panel_width, next};
}

}  // namespace heed::kernels
