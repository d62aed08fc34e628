#pragma once

#include <algorithm>

#include "autograd/blas/finish.hpp"
#include "autograd/blas/panels.hpp"

/// The innermost kernel of a product: outer products into a tile of a few rows and batches of C, as many as fit into registers.
namespace heed::kernels {

constexpr Index line = 16;        // numbers per cache line
constexpr Index step_width = 32;  // words of k between one prefetch and the next

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
/// times those of a panel. Not inlined, and with unrolled loops over the sums, because compilers otherwise keep the sums in memory instead
/// of registers.
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
