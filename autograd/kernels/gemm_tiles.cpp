// C is made in tiles of a few rows and batches, as many as there are registers for, by outer products: a column of A's tile, number by
// number, times a row of B. B is copied in panels, block by block (Goto & van de Geijn 2008 have the names); A is not copied but asked for
// ahead of its use: the rows of the next tile while those of this one meet the panels, or, where A is transposed, the next block of both.

#include "autograd/kernels/gemm_tiles.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "autograd/kernels/finish.hpp"
#include "autograd/kernels/panels.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/parallel.hpp"

namespace heed::kernels {

namespace {

using Batch = Lanes<float>;
constexpr std::int64_t L = lanes<float>;

/// Tiles of R rows and B batches, and panels of that width. What a step of a tile costs beside its R · B multiply-adds is R + B loads and
/// their place in the processor's queue, which another process on the same core may leave it half of: the fewer the better.
template <int R, int B>
struct Shape {
  static constexpr int rows = R, batches = B;
  static constexpr std::int64_t width = B * L;
};
using Wide = Shape<6, L == 16 ? 4 : 2>;     // 24 + 4 + 1 registers of 32, 12 + 2 + 1 of 16
using Narrow = Shape<L == 16 ? 14 : 6, 2>;  // 28 + 2 + 1: for a C of no more columns

constexpr std::int64_t line = 16;                   // numbers that come from memory together
constexpr std::int64_t depth = 384, breadth = 384;  // of what is copied of B at a time: 590 KB, for the second cache
constexpr std::int64_t few_rows = 64;               // of A, for which B's rows are read where they are
constexpr std::int64_t near = 180'000;              // numbers that fit the second cache beside a block of B: 720 KB
constexpr std::int64_t step_width = 32;             // products of an element between one asking ahead and the next

/// x / y, upwards.
std::int64_t parts(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

// What will be needed next is asked for a little at every step of a tile, since only a few requests can be under way. Three ways:

/// Not at all: it is in the second cache.
struct NothingAhead {
  static constexpr bool asks = false;
  void panel() {}
  void step(std::int64_t /*k*/) {}
};

/// The rows of A that come next, some of them with each panel.
struct RowsAhead {
  static constexpr bool asks = true;
  float const* next;
  std::int64_t leading, rows, at_once;
  std::int64_t begin = 0, end = 0;

  void panel() {
    begin = end;
    end = std::min(begin + at_once, rows);
  }
  void step(std::int64_t k) {
    for (std::int64_t r = begin; r < end; ++r)
      for (std::int64_t i = 0; i < step_width; i += line) __builtin_prefetch(next + r * leading + k + i);
  }
};

/// The next block of a transposed A's rows and of B's that go with them, each without a gap.
struct BlockAhead {
  static constexpr bool asks = true;
  float const *a, *b;
  std::int64_t lines_of_a, lines_of_b;  ///< at a step

  void panel() {}
  void step(std::int64_t /*k*/) {
    for (std::int64_t i = 0; i < lines_of_a; ++i, a += line) __builtin_prefetch(a);
    for (std::int64_t i = 0; i < lines_of_b; ++i, b += line) __builtin_prefetch(b);
  }
};

/// Columns [column, column + batches · L) of R rows of C, whose width they may pass. A's element [r, k] is a[r · leading] [k], or
/// transposed a[k · leading] [r]. What will be needed is asked for a little at every step, since only a few requests can be under way.
/// Not inlined, since the compiler then finds no registers for the sums, and each loop over them unrolled, since it otherwise keeps them in
/// memory.
template <int R, int batches, bool transposed, class Ahead>
[[gnu::noinline]] void tile(std::int64_t k_end, Matrix<float> const& a, Ahead& ahead, std::int64_t rows_at_once, float const* b,
                            std::int64_t leading_b, Finish const& finish, float* c, std::int64_t leading_c, std::int64_t column,
                            std::int64_t width) {
  Batch sums[R][batches];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < batches; ++i) sums[r][i] = Batch(0.0F);
  }
  auto const multiply = [&](std::int64_t begin, std::int64_t end) {
#pragma GCC unroll 4
    for (std::int64_t k = begin; k < end; ++k) {
      Batch right[batches];
#pragma GCC unroll 4
      for (int i = 0; i < batches; ++i) right[i] = Batch::load_unaligned(b + k * leading_b + i * L);
      // Rows of a transposed A often drive one another from the first cache: they come from the second, and in time.
      if constexpr (transposed) __builtin_prefetch(a.data + (k + 4) * a.leading);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        Batch const left(transposed ? a.data[k * a.leading + r] : a.data[r * a.leading + k]);
#pragma GCC unroll 4
        for (int i = 0; i < batches; ++i) sums[r][i] = xsimd::fma(left, right[i], sums[r][i]);
      }
    }
  };
  if constexpr (Ahead::asks) {
    for (std::int64_t k = 0, row = 0; k < k_end; k += step_width) {
      ahead.step(k);
      for (std::int64_t const stop = std::min<std::int64_t>(row + rows_at_once, R); row < stop; ++row) {
        std::int64_t const place = row * leading_c + column;
        for (int i = 0; i < batches; ++i) __builtin_prefetch(c + place + i * L, 1);
        if (finish.matrix != nullptr)
          for (int i = 0; i < batches; ++i) __builtin_prefetch(finish.matrix + place + i * L);
      }
      if (k + step_width <= k_end) {
        multiply(k, k + step_width);  // of a known length, which makes a tile faster by a twentieth
      } else {
        multiply(k, k_end);
      }
    }
  } else {
    multiply(0, k_end);
  }
  width -= column;
  if (width >= batches * L) return finish.template all<R, batches>(sums, c, leading_c, column);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < batches; ++i)
      finish.some(sums[r][i], c, column + i * L, r * leading_c + column + i * L, std::min(L, width - i * L));
  }
}

/// Columns of as many batches as are left, `batches` at most.
template <int R, int batches, bool transposed, class... Arguments>
void tile_of(std::int64_t count, Arguments&... arguments) {
  if constexpr (batches > 0) {
    if (count == batches) return tile<R, batches, transposed>(arguments...);
    tile_of<R, batches - 1, transposed>(count, arguments...);
  }
}

template <class S, int R, bool transposed, class Ahead>
void row_of_tiles(std::int64_t k_end, Matrix<float> const& a, Ahead& ahead, Panels const& b, Finish const& finish, float* c,
                  std::int64_t leading_c, std::int64_t width) {
  std::int64_t const rows_at_once = Ahead::asks ? parts(R, parts(k_end, step_width)) : 0;  // of C
  auto const* panel = b.data;
  for (std::int64_t column = 0; column < width; column += S::width, panel += b.next) {
    ahead.panel();
    tile_of<R, S::batches, transposed>(std::min<std::int64_t>(S::batches, parts(width - column, L)), k_end, a, ahead, rows_at_once, panel,
                                       b.leading, finish, c, leading_c, column, width);
  }
}

/// The last rows, fewer than a tile's.
template <class S, int R, bool transposed, class... Arguments>
void last_rows(std::int64_t rows, Arguments&... arguments) {
  if constexpr (R > 0) {
    if (rows == R) return row_of_tiles<S, R, transposed>(arguments...);
    last_rows<S, R - 1, transposed>(rows, arguments...);
  }
}

/// What some of A's columns, from `column` on, are added to as rows of `rows` beginning with `next`; nothing if that is null.
struct Sum {
  RowSum<float>* rows;
  std::int64_t next, column;
};

/// Some rows of C, columns [0, width), which `following` others come after. block: what comes after all, if A is transposed.
template <class S, bool transposed, class Ahead>
void some_rows(std::int64_t rows, std::int64_t following, std::int64_t k_end, Matrix<float> a, Ahead& block, Panels const& b, Finish finish,
               float* c, std::int64_t leading_c, std::int64_t width, Sum sum) {
  constexpr int tile_rows = S::rows;
  std::int64_t const share = parts(tile_rows, parts(width, S::width));
  auto const advance = [&](std::int64_t count) {
    if (sum.rows != nullptr) sum.rows->add(sum.next, sum.next + count, sum.column, k_end, a.data, a.leading);
    sum.next += count;
    a.data += transposed ? count : count * a.leading;
    c += count * leading_c;
    if (finish.matrix != nullptr) finish.matrix += count * leading_c;
    rows -= count;
  };
  std::int64_t const rest = rows % tile_rows;
  // A tile of few rows would wait for its sums: the last two share what is left.
  bool const halved = 0 < rest && rest < tile_rows / 3 && rows > tile_rows;
  std::int64_t const last = halved ? tile_rows + rest : rest;
  while (rows > last) {
    auto const* const next = a.data + (transposed ? tile_rows : tile_rows * a.leading);
    if constexpr (std::is_same_v<Ahead, RowsAhead>)
      block = {next, a.leading, std::min<std::int64_t>(rows - tile_rows + following, tile_rows), share};
    row_of_tiles<S, tile_rows, transposed>(k_end, a, block, b, finish, c, leading_c, width);
    advance(tile_rows);
  }
  NothingAhead none;
  if (halved) {
    std::int64_t const half = parts(last, 2);
    last_rows<S, tile_rows - 1, transposed>(half, k_end, a, none, b, finish, c, leading_c, width);
    advance(half);
  }
  last_rows<S, tile_rows - 1, transposed>(rows, k_end, a, none, b, finish, c, leading_c, width);
  advance(rows);
}

/// Asks for all at once.
void ask(float const* data, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += line) __builtin_prefetch(data + i);
}

/// x + offset, or null.
template <class T>
T const* from(T const* start, std::int64_t offset) {
  return start != nullptr ? start + offset : nullptr;
}

/// This thread's, for a block of B.
float* room_for_panels() {
  thread_local std::vector<float, xsimd::aligned_allocator<float, 64>> room(depth * breadth);
  return room.data();
}

struct Factors {
  std::int64_t n, m, k;
  Matrix<float> a, b;
};

struct Result {
  float alpha, beta;
  float* c;
  std::int64_t leading;
  Addend<float> addend;  ///< its matrix has C's leading dimension; in_place is not looked at
  RowSum<float>* sum;
};

/// A product in sweeps over C's rows, one for each block of B, stretch of k by stretch of k.
template <class S>
class TiledProduct {
 public:
  /// What a thread has at hand of the sweep that it is in.
  struct AtHand {
    std::int64_t sweep = -1;
    Panels panels{};
    BlockAhead block{};
  };

  /// rows: how many of C's a thread makes, about.
  TiledProduct(Factors const& f, Result const& to, std::int64_t rows) : f_(f), to_(to), rows_(rows) {
    auto const& [n, m, k, a, b] = f;
    // A transposed A comes by blocks of rows, as does B then, while another block is multiplied: they must stay in the second cache. A
    // may be meant for two threads, of which each asks for whole rows. The last block comes first: what made A and B made it last.
    bool const whole = a.transposed && !b.transposed && a.leading <= 2 * rows && b.leading == m;
    by_blocks_ = whole && a.leading * (k + m) > near / 2 && stretch() * (a.leading + m) <= near;
    by_rows_ = !a.transposed && rows * (k + m) > near;
    as_it_is_ = !b.transposed && m % L == 0 && (rows <= few_rows || (by_blocks_ && m % 1024 != 0));
  }

  std::int64_t sweeps() const { return parts(f_.k, stretch()) * parts(f_.m, breadth); }

  void make(AtHand& at_hand, std::int64_t sweep, std::int64_t begin, std::int64_t end) const {
    std::int64_t const block = sweep / parts(f_.m, breadth), j = sweep % parts(f_.m, breadth) * breadth;
    std::int64_t const k0 = (f_.a.transposed ? parts(f_.k, stretch()) - 1 - block : block) * stretch();
    if (at_hand.sweep != sweep) prepare(at_hand, k0, j);
    at_hand.sweep = sweep;
    NothingAhead none;
    RowsAhead next_rows{};
    if (by_blocks_ && j == 0 && coming(k0) > 0) {
      make_rows<true>(at_hand.block, at_hand.panels, begin, end, k0, j);
    } else if (by_rows_) {
      make_rows<false>(next_rows, at_hand.panels, begin, end, k0, j);
    } else if (f_.a.transposed) {
      make_rows<true>(none, at_hand.panels, begin, end, k0, j);
    } else {
      make_rows<false>(none, at_hand.panels, begin, end, k0, j);
    }
  }

 private:
  std::int64_t stretch() const { return f_.a.transposed ? depth / 2 : depth; }
  std::int64_t depth_at(std::int64_t k0) const { return std::min(stretch(), f_.k - k0); }
  bool is_first(std::int64_t k0) const { return f_.a.transposed ? k0 + stretch() >= f_.k : k0 == 0; }
  /// How deep the block is that comes after one of a transposed A.
  std::int64_t coming(std::int64_t k0) const { return std::min(stretch(), k0); }
  std::int64_t width_at(std::int64_t j) const { return std::min(breadth, f_.m - j); }

  void prepare(AtHand& at_hand, std::int64_t k0, std::int64_t j) const {
    auto const& [n, m, k, a, b] = f_;
    if (by_blocks_ && at_hand.sweep < 0) ask(a.data + k0 * a.leading, a.leading * depth_at(k0)), ask(b.data + k0 * m, m * depth_at(k0));
    Matrix<float> const right{b.data + (b.transposed ? j * b.leading + k0 : k0 * b.leading + j), b.leading, b.transposed};
    at_hand.panels =
        as_it_is_ ? Panels{right.data, right.leading, S::width} : packed(right, depth_at(k0), width_at(j), S::width, room_for_panels());
    if (!by_blocks_) return;
    std::int64_t const steps = std::max<std::int64_t>(1, rows_ / S::rows) * parts(width_at(j), S::width) * parts(depth_at(k0), step_width);
    at_hand.block = {a.data + (k0 - coming(k0)) * a.leading, b.data + (k0 - coming(k0)) * m, parts(coming(k0) * a.leading, line * steps),
                     parts(coming(k0) * m, line * steps)};
  }

  template <bool transposed, class Ahead>
  void make_rows(Ahead& ahead, Panels const& panels, std::int64_t begin, std::int64_t end, std::int64_t k0, std::int64_t j) const {
    auto const& [n, m, k, a, b] = f_;
    std::int64_t const at = begin * to_.leading + j;
    Matrix<float> const left{a.data + (transposed ? k0 * a.leading + begin : begin * a.leading + k0), a.leading, transposed};
    Finish const finish = is_first(k0) ? Finish{to_.alpha, to_.beta, from(to_.addend.row, j), from(to_.addend.matrix, at)}
                                       : Finish{to_.alpha, 1, nullptr, nullptr};
    some_rows<S, transposed>(end - begin, n - end, depth_at(k0), left, ahead, panels, finish, to_.c + at, to_.leading, width_at(j),
                             {j == 0 ? to_.sum : nullptr, begin, k0});
  }

  Factors f_;
  Result to_;
  std::int64_t rows_;
  bool by_blocks_, by_rows_, as_it_is_;
};

template <class S>
void make_here(Factors const& factors, Result const& result) {
  TiledProduct<S> const product(factors, result, factors.n);
  typename TiledProduct<S>::AtHand at_hand;
  for (std::int64_t sweep = 0; sweep < product.sweeps(); ++sweep) product.make(at_hand, sweep, 0, factors.n);
}

template <class S>
void make_in_parallel(Factors const& factors, Result const& result) {
  auto const& [n, m, k, a, b] = factors;
  TiledProduct<S> const product(factors, result, parts(n, threads()));
  std::vector<typename TiledProduct<S>::AtHand> at_hand(static_cast<std::size_t>(threads()));
  constexpr double multiply_add = 0.02;  // nanoseconds, about
  parallel_sweeps(
      product.sweeps(), n, multiply_add * static_cast<double>(m * k) / static_cast<double>(product.sweeps()),
      [&](std::int64_t sweep, std::int64_t begin, std::int64_t end) {
        product.make(at_hand[static_cast<std::size_t>(thread_index())], sweep, begin, end);
      },
      result.sum != nullptr ? result.sum->stretch() : S::rows);
}

}  // namespace

bool tiles_are_faster(std::int64_t n, std::int64_t m, std::int64_t k, Matrix<float> const& a, Matrix<float> const& b) {
  // Of OpenBLAS's SkylakeX kernels' speed, on a Sapphire Rapids, one thread, taken by turns:
  //   [512, 64] x [64, 64]ᵀ       1.45      [2048, 384] x [384, 384]ᵀ    1.22      [32, 32] x [32, 32]ᵀ         1.89
  //   [512, 256] x [256, 64]ᵀ     1.35      [2048, 384] x [384, 1536]    1.07      [32, 32] x [32, 32]          0.96
  //   [768, 128] x [128, 128]ᵀ    1.19      [2048, 1024] x [1024, 256]   1.26      [60, 96]ᵀ x [60, 96]         0.89
  //   [16, 512] x [512, 512]      1.47      [256, 768] x [768, 3072]     1.16      [4096, 1024] x [1024, 1024]  1.02
  //   [512, 64]ᵀ x [512, 64]      1.38      [2048, 384]ᵀ x [2048, 384]   1.07      [256, 3072]ᵀ x [256, 768]    0.87
  if (n < 16 || m < 16 || k < 16) return false;
  if (!b.transposed && n * m * k <= 1'000'000) return false;  // OpenBLAS leaves such factors where they are, too
  constexpr std::int64_t most = 600'000, most_transposed = L == 16 ? most : 1 << 15, most_rows = L == 16 ? 1024 : 0;
  // Rows 4 KiB apart, which are not copied here, drive one another from the caches where they are many.
  if (a.leading % 1024 == 0 && (a.transposed || L == 8)) return false;
  return a.transposed ? n * m <= most_transposed : m * k <= most || n <= most_rows;
}

void tiled_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<float> a, Matrix<float> b, float beta, float* c,
                std::int64_t leading_c, Addend<float> const& addend) {
  auto const& make = m > Narrow::width ? make_here<Wide> : make_here<Narrow>;
  make({n, m, k, a, b}, {alpha, beta, c, leading_c, addend, nullptr});
}

void parallel_tiled_gemm(std::int64_t n, std::int64_t m, std::int64_t k, Matrix<float> a, Matrix<float> b, float* c,
                         Addend<float> const& addend, RowSum<float>* sum) {
  auto const& make = m > Narrow::width ? make_in_parallel<Wide> : make_in_parallel<Narrow>;
  make({n, m, k, a, b}, {1, addend.in_place ? 1.0F : 0.0F, c, m, addend, sum});
}

}  // namespace heed::kernels
