#pragma once

#include <algorithm>

#include "autograd/blas/elements.hpp"
#include "autograd/blas/gemm.hpp"
#include "autograd/kernels/rows.hpp"

/// The innermost kernel of a product: outer products into a tile of a few rows and batches of C, as many as fit into registers.
namespace heed::kernels {

constexpr Index line = 16;        // numbers per cache line
constexpr Index step_width = 32;  // words of k between one prefetch and the next

// Copies of parts of the factors, as words (elements.hpp), in the order in which tiles read them.

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

// The tile itself.

/// Tiles of R rows and B batches, and panels of that width. Besides its R · B multiply-adds, a step needs R + B loads, which occupy the
/// processor's queue (half of it while another process shares the core): the fewer the better.
template <int R, int B>
struct TileShape {
  static constexpr int rows = R, batches = B;
  static constexpr Index width = B * lanes<float>;
};

/// Prefetches a block [rows, columns] of a matrix, a few lines at every step, since only a few requests can be outstanding.
class Prefetch {
 public:
  Prefetch() = default;
  Prefetch(float const* x, Index leading, Index rows, Index columns, Index steps) : first_(x, leading, rows, columns, steps) {}
  /// Two matrices with the same number of rows.
  Prefetch(float const* x, Index leading, Index rows, Index columns, float const* y, Index leading_y, Index columns_y, Index steps)
      : first_(x, leading, rows, columns, steps), second_(y, leading_y, rows, columns_y, steps) {}
  void step() {
    first_.step();
    second_.step();
  }

 private:
  struct RowPointers {
    RowPointers() = default;
    RowPointers(float const* start, Index apart, Index rows, Index count, Index steps)
        : x(start), leading(apart), columns(count), left(rows * parts(count, line)), at_once(parts(left, steps)) {}
    void step() {
      for (Index i = std::min(at_once, left); i > 0; --i, --left) {
        __builtin_prefetch(x + column);
        column += line;
        if (column >= columns) column = 0, x += leading;
      }
    }
    float const* x = nullptr;
    Index leading = 0, columns = 0, column = 0, left = 0, at_once = 0;
  };
  RowPointers first_, second_;
};

/// Destination of the sums: columns [column, width) of rows of C.
struct ProductTarget {
  Finish finish;
  float* c;
  Index leading, column, width;
};

/// Columns [to.column, to.column + batches · L) of R rows of C, which may extend past its width: the sum over `steps` words of A's rows
/// times those of a panel. Not inlined, and with unrolled loops over the sums, else compilers keep the sums in memory, not in registers.
template <class Arithmetic, int R, int batches, bool transposed, bool prefetches>
[[gnu::noinline]] void tile(Index steps, float const* a, Index leading_a, float const* b, Index leading_b, Prefetch& next,
                            ProductTarget const& to) {
  constexpr Index L = lanes<float>;
  WordBatch sums[R][batches];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < batches; ++i) sums[r][i] = WordBatch(0.0F);
  }
  auto const multiply = [&](Index begin, Index end) {
#pragma GCC unroll 4
    for (Index k = begin; k < end; ++k) {
      WordBatch right[batches];
#pragma GCC unroll 4
      for (int i = 0; i < batches; ++i) right[i] = WordBatch::load_unaligned(b + k * leading_b + i * L);
      // Rows of a transposed A often evict one another from the first-level cache: prefetch them from the second.
      if constexpr (transposed) __builtin_prefetch(a + (k + 4) * leading_a);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        WordBatch const left(transposed ? a[k * leading_a + r] : a[r * leading_a + k]);
#pragma GCC unroll 4
        for (int i = 0; i < batches; ++i) sums[r][i] = Arithmetic::multiply_add(left, right[i], sums[r][i]);
      }
    }
  };
  if constexpr (prefetches) {
    Index const rows_at_once = parts(R, parts(steps, step_width));  // rows of C
    for (Index k = 0, row = 0; k < steps; k += step_width) {
      next.step();
      for (Index const stop = std::min<Index>(row + rows_at_once, R); row < stop; ++row) {
        Index const offset = row * to.leading + to.column;
        for (Index i = 0; i < batches * L; i += line) __builtin_prefetch(to.c + offset + i, 1);
        if (to.finish.matrix != nullptr)
          for (Index i = 0; i < batches * L; i += line) __builtin_prefetch(to.finish.matrix + offset + i);
      }
      if (k + step_width <= steps) {
        multiply(k, k + step_width);  // a compile-time length makes a tile 5 % faster
      } else {
        multiply(k, steps);
      }
    }
  } else {
    multiply(0, steps);
  }
  Index const width = to.width - to.column;
  if (width >= batches * L) return to.finish.template all<R, batches>(sums, to.c, to.leading, to.column);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < batches; ++i) {
      Index const column = to.column + i * L;
      to.finish.some(sums[r][i], to.c, column, r * to.leading + column, std::min(L, width - i * L));
    }
  }
}

}  // namespace heed::kernels
