#pragma once

#include <algorithm>
#include <cstdint>

#include "autograd/blas/finish.hpp"
#include "autograd/blas/panels.hpp"

/// The innermost kernel of a product: outer products into a tile of a few rows and batches of C, as many as fit into registers.
namespace heed::kernels {

constexpr std::int64_t line = 16;        // numbers per cache line
constexpr std::int64_t step_width = 32;  // words of k between one prefetch and the next

/// x / y, rounded up.
constexpr std::int64_t parts(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

/// Tiles of R rows and B batches, and panels of that width. Besides its R · B multiply-adds, a step needs R + B loads, which occupy the
/// processor's queue (half of it while another process shares the core): the fewer the better.
template <int R, int B>
struct TileShape {
  static constexpr int rows = R, batches = B;
  static constexpr std::int64_t width = B * lanes<float>;
};

/// Prefetches a block [rows, columns] of a matrix, a few lines at every step, since only a few requests can be outstanding.
class Prefetch {
 public:
  Prefetch() = default;
  Prefetch(float const* x, std::int64_t leading, std::int64_t rows, std::int64_t columns, std::int64_t steps)
      : first_(x, leading, rows, columns, steps) {}
  /// Two matrices with the same number of rows.
  Prefetch(float const* x, std::int64_t leading, std::int64_t rows, std::int64_t columns, float const* y, std::int64_t leading_y,
           std::int64_t columns_y, std::int64_t steps)
      : first_(x, leading, rows, columns, steps), second_(y, leading_y, rows, columns_y, steps) {}
  void step() {
    first_.step();
    second_.step();
  }

 private:
  struct RowPointers {
    RowPointers() = default;
    RowPointers(float const* start, std::int64_t apart, std::int64_t rows, std::int64_t count, std::int64_t steps)
        : x(start), leading(apart), columns(count), left(rows * parts(count, line)), at_once(parts(left, steps)) {}
    void step() {
      for (std::int64_t i = std::min(at_once, left); i > 0; --i, --left) {
        __builtin_prefetch(x + column);
        column += line;
        if (column >= columns) column = 0, x += leading;
      }
    }
    float const* x = nullptr;
    std::int64_t leading = 0, columns = 0, column = 0, left = 0, at_once = 0;
  };
  RowPointers first_, second_;
};

/// Destination of the sums: columns [column, width) of rows of C.
struct ProductTarget {
  Finish finish;
  float* c;
  std::int64_t leading, column, width;
};

/// Columns [to.column, to.column + batches · L) of R rows of C, which may extend past its width: the sum over `steps` words of A's rows
/// times those of a panel. Not inlined, and with unrolled loops over the sums, because compilers otherwise keep the sums in memory instead
/// of registers.
template <class Arithmetic, int R, int batches, bool transposed, bool prefetches>
[[gnu::noinline]] void tile(std::int64_t steps, float const* a, std::int64_t leading_a, float const* b, std::int64_t leading_b,
                            Prefetch& next, ProductTarget const& to) {
  constexpr std::int64_t L = lanes<float>;
  WordBatch sums[R][batches];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < batches; ++i) sums[r][i] = WordBatch(0.0F);
  }
  auto const multiply = [&](std::int64_t begin, std::int64_t end) {
#pragma GCC unroll 4
    for (std::int64_t k = begin; k < end; ++k) {
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
    std::int64_t const rows_at_once = parts(R, parts(steps, step_width));  // rows of C
    for (std::int64_t k = 0, row = 0; k < steps; k += step_width) {
      next.step();
      for (std::int64_t const stop = std::min<std::int64_t>(row + rows_at_once, R); row < stop; ++row) {
        std::int64_t const place = row * to.leading + to.column;
        for (std::int64_t i = 0; i < batches * L; i += line) __builtin_prefetch(to.c + place + i, 1);
        if (to.finish.matrix != nullptr)
          for (std::int64_t i = 0; i < batches * L; i += line) __builtin_prefetch(to.finish.matrix + place + i);
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
  std::int64_t const width = to.width - to.column;
  if (width >= batches * L) return to.finish.template all<R, batches>(sums, to.c, to.leading, to.column);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < batches; ++i) {
      std::int64_t const column = to.column + i * L;
      to.finish.some(sums[r][i], to.c, column, r * to.leading + column, std::min(L, width - i * L));
    }
  }
}

}  // namespace heed::kernels
