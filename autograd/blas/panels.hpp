#pragma once

#include <algorithm>

#include "autograd/blas/elements.hpp"
#include "autograd/blas/products.hpp"
#include "autograd/kernels/rows.hpp"

/// Copies parts of a product's factors, as words (elements.hpp), in the order in which tiles read them.
namespace heed::kernels {

/// Panels of B's columns, [steps, panel_width] words each; or B's own rows, if they are read only a few times.
struct RightPanels {
  float const* data;
  Index leading;  ///< from row to row of a panel
  Index next;     ///< from panel to panel
};

/// Number of words that hold `k` numbers.
template <class Element>
Index words(Index k) {
  return (k + Element::per_word - 1) / Element::per_word;
}

/// to[s, j] = word s of column j of x [k, columns], padded with zeros to a whole batch. Prefetches the rows ahead.
template <class Element, class Address>
void pack_rows(float const* x, Index leading, Index k, Index columns, Address const& address) {
  constexpr Index L = lanes<float>, ahead = 4;
  for (Index s = 0; s < words<Element>(k); ++s) {
    Index const row = s * Element::per_word;
    float const* const from = x + row * leading;
    if (row + (ahead + 1) * Element::per_word <= k) {
      for (Index i = ahead * Element::per_word; i < (ahead + 1) * Element::per_word; ++i)
        for (Index j = 0; j < columns; j += 16) __builtin_prefetch(from + i * leading + j);
    }
    for (Index j = 0; j < columns; j += L) Element::across(from + j, leading, k - row, columns - j).store_aligned(address(s, j));
  }
}

/// panel[s, j] = word s of row j of x [count ≤ L, k], zeros in the columns beyond; rows of a panel are panel_width apart.
template <class Element>
void pack_columns(float const* x, Index leading, Index k, Index count, float* panel, Index panel_width) {
  constexpr Index L = lanes<float>;
  Index const steps = words<Element>(k);
  alignas(64) float rows[L * L];
  alignas(64) float columns[L * L];
  if (count < L) std::fill_n(rows, L * L, 0.0F);
  for (Index s = 0; s < steps; s += L) {
    Index const at = s * Element::per_word;
    for (Index j = 0; j < L; ++j) __builtin_prefetch(x + (L + j) * leading + at);
    if (Element::as_they_are && count == L && s + L <= steps) {
      transpose(x + at, leading, panel + s * panel_width, panel_width);
      continue;
    }
    for (Index j = 0; j < count; ++j) Element::along(x + j * leading + at, k - at).store_aligned(rows + j * L);
    if (s + L <= steps) {
      transpose(rows, L, panel + s * panel_width, panel_width);
    } else {
      transpose(rows, L, columns, L);
      for (Index i = 0; i < steps - s; ++i) WordBatch::load_aligned(columns + i * L).store_aligned(panel + (s + i) * panel_width);
    }
  }
}

/// Copies k rows of `columns` columns of B into panels.
template <class Element>
RightPanels packed(Matrix<float> const& b, Index k, Index columns, Index panel_width, float* room) {
  Index const next = words<Element>(k) * panel_width;
  auto const address = [&](Index s, Index j) { return room + j / panel_width * next + s * panel_width + j % panel_width; };
  if (b.transposed) {
    for (Index j = 0; j < columns; j += lanes<float>)
      pack_columns<Element>(b.data + j * b.leading, b.leading, k, std::min(lanes<float>, columns - j), address(0, j), panel_width);
  } else {
    pack_rows<Element>(b.data, b.leading, k, columns, address);
  }
  return {room, panel_width, next};
}

/// Copies `rows` rows of k numbers of A, transposed or not; needs room for round_up(rows, L) · round_up(words, L) and L more per row.
template <class Element>
Matrix<float> copied(Matrix<float> const& a, Index rows, Index k, float* room) {
  constexpr Index L = lanes<float>;
  if (a.transposed) {
    Index const leading = (rows + L - 1) / L * L;
    pack_rows<Element>(a.data, a.leading, k, rows, [&](Index s, Index r) { return room + s * leading + r; });
    return {room, leading, true};
  }
  Index const leading = ((words<Element>(k) + L - 1) / L + 1) * L;
  for (Index r = 0; r < rows; ++r) {
    for (Index at = 0; at < k; at += L * Element::per_word)
      Element::along(a.data + r * a.leading + at, k - at).store_aligned(room + r * leading + at / Element::per_word);
  }
  return {room, leading, false};
}

}  // namespace heed::kernels
