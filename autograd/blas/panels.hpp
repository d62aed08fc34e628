#pragma once

#include <algorithm>
#include <cstdint>

#include "autograd/blas/elements.hpp"
#include "autograd/blas/gemm.hpp"
#include "autograd/kernels/rows.hpp"

/// Copies parts of a product's factors, as words (elements.hpp), in the order in which tiles read them.
namespace heed::kernels {

/// A factor or a part of one: element [r, s] is at data[r · leading + s], or transposed at data[s · leading + r].
struct LeftFactor {
  float const* data;
  std::int64_t leading;
  bool transposed;
};

/// Panels of B's columns, [steps, panel_width] words each; or B's own rows, if they are read only a few times.
struct RightPanels {
  float const* data;
  std::int64_t leading;  ///< from row to row of a panel
  std::int64_t next;     ///< from panel to panel
};

/// Number of words that hold `k` numbers.
template <class Element>
std::int64_t words(std::int64_t k) {
  return (k + Element::per_word - 1) / Element::per_word;
}

/// to[s, j] = word s of column j of x [k, columns], padded with zeros to a whole batch. Prefetches the rows ahead.
template <class Element, class Place>
void pack_rows(float const* x, std::int64_t leading, std::int64_t k, std::int64_t columns, Place const& place) {
  constexpr std::int64_t L = lanes<float>, ahead = 4;
  for (std::int64_t s = 0; s < words<Element>(k); ++s) {
    std::int64_t const row = s * Element::per_word;
    float const* const from = x + row * leading;
    if (row + (ahead + 1) * Element::per_word <= k) {
      for (std::int64_t i = ahead * Element::per_word; i < (ahead + 1) * Element::per_word; ++i)
        for (std::int64_t j = 0; j < columns; j += 16) __builtin_prefetch(from + i * leading + j);
    }
    for (std::int64_t j = 0; j < columns; j += L) Element::across(from + j, leading, k - row, columns - j).store_aligned(place(s, j));
  }
}

/// panel[s, j] = word s of row j of x [count ≤ L, k], zeros in the columns beyond; rows of a panel are panel_width apart.
template <class Element>
void pack_columns(float const* x, std::int64_t leading, std::int64_t k, std::int64_t count, float* panel, std::int64_t panel_width) {
  constexpr std::int64_t L = lanes<float>;
  std::int64_t const steps = words<Element>(k);
  alignas(64) float rows[L * L];
  alignas(64) float columns[L * L];
  if (count < L) std::fill_n(rows, L * L, 0.0F);
  for (std::int64_t s = 0; s < steps; s += L) {
    std::int64_t const at = s * Element::per_word;
    for (std::int64_t j = 0; j < L; ++j) __builtin_prefetch(x + (L + j) * leading + at);
    if (Element::as_they_are && count == L && s + L <= steps) {
      transpose(x + at, leading, panel + s * panel_width, panel_width);
      continue;
    }
    for (std::int64_t j = 0; j < count; ++j) Element::along(x + j * leading + at, k - at).store_aligned(rows + j * L);
    if (s + L <= steps) {
      transpose(rows, L, panel + s * panel_width, panel_width);
    } else {
      transpose(rows, L, columns, L);
      for (std::int64_t i = 0; i < steps - s; ++i) WordBatch::load_aligned(columns + i * L).store_aligned(panel + (s + i) * panel_width);
    }
  }
}

/// Copies k rows of `columns` columns of B into panels.
template <class Element>
RightPanels packed(Matrix<float> const& b, std::int64_t k, std::int64_t columns, std::int64_t panel_width, float* room) {
  std::int64_t const next = words<Element>(k) * panel_width;
  auto const place = [&](std::int64_t s, std::int64_t j) { return room + j / panel_width * next + s * panel_width + j % panel_width; };
  if (b.transposed) {
    for (std::int64_t j = 0; j < columns; j += lanes<float>)
      pack_columns<Element>(b.data + j * b.leading, b.leading, k, std::min(lanes<float>, columns - j), place(0, j), panel_width);
  } else {
    pack_rows<Element>(b.data, b.leading, k, columns, place);
  }
  return {room, panel_width, next};
}

/// Copies `rows` rows of k numbers of A, transposed or not; needs room for round_up(rows, L) · round_up(words, L) and L more per row.
template <class Element>
LeftFactor copied(Matrix<float> const& a, std::int64_t rows, std::int64_t k, float* room) {
  constexpr std::int64_t L = lanes<float>;
  if (a.transposed) {
    std::int64_t const leading = (rows + L - 1) / L * L;
    pack_rows<Element>(a.data, a.leading, k, rows, [&](std::int64_t s, std::int64_t r) { return room + s * leading + r; });
    return {room, leading, true};
  }
  std::int64_t const leading = ((words<Element>(k) + L - 1) / L + 1) * L;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t at = 0; at < k; at += L * Element::per_word)
      Element::along(a.data + r * a.leading + at, k - at).store_aligned(room + r * leading + at / Element::per_word);
  }
  return {room, leading, false};
}

}  // namespace heed::kernels
