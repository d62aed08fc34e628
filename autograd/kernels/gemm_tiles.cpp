// C is made in tiles of `tile_rows` × 2 batches, as many as there are registers for, by outer products: a column of A's tile, number by
// number, times a row of B. B is copied in panels, block by block (Goto & van de Geijn 2008 have the names); A is not copied but asked for
// ahead of its use, the rows of the next tile while those of this one meet the panels.

#include "autograd/kernels/gemm_tiles.hpp"

#include <algorithm>
#include <vector>

#include "autograd/kernels/rows.hpp"

namespace heed::kernels {

namespace {

using Batch = Lanes<float>;
constexpr std::int64_t L = lanes<float>;

constexpr int tile_rows = L == 16 ? 14 : 6;  // 28 + 2 + 1 registers of 32, 12 + 2 + 1 of 16
constexpr std::int64_t panel_width = 2 * L;
constexpr std::int64_t depth = 384, breadth = 384;  // of what is copied of B at a time: 590 KB, for the second cache
constexpr std::int64_t few_rows = 64;               // of A, for which B's rows are read where they are
constexpr std::int64_t rows_ahead = 4;              // of B, asked for while one is copied
constexpr std::int64_t near = 180'000;              // numbers of A and C that are in the second cache anyway: 720 KB
constexpr std::int64_t step_width = 32;             // products of an element between one asking ahead and the next

/// a0 b0 a1 b1 …, the lower and the upper half.
void interleave(Batch const& a, Batch const& b, Batch& low, Batch& high) {
#ifdef __AVX512F__
  auto const from_low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  auto const from_high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  low = _mm512_permutex2var_ps(a, from_low, b);
  high = _mm512_permutex2var_ps(a, from_high, b);
#else
  __m256 const even = _mm256_unpacklo_ps(a, b), odd = _mm256_unpackhi_ps(a, b);
  low = _mm256_permute2f128_ps(even, odd, 0x20);
  high = _mm256_permute2f128_ps(even, odd, 0x31);
#endif
}

/// Rows become columns: log₂ L rounds, each of which interleaves the first half of the rows with the second.
void transpose(Batch (&rows)[L]) {
  Batch next[L];
  for (std::int64_t round = 1; round < L; round *= 2) {
    for (std::int64_t i = 0; i < L / 2; ++i) interleave(rows[i], rows[i + L / 2], next[2 * i], next[2 * i + 1]);
    std::copy_n(next, L, rows);
  }
}

/// panel[k, j] = x[j, k] for j < count ≤ L, 0 beyond; k < k_end.
void pack_transposed(float const* x, std::int64_t leading, std::int64_t count, std::int64_t k_end, float* panel) {
  std::int64_t k = 0;
  for (; k + L <= k_end; k += L) {
    Batch rows[L];
    for (std::int64_t j = 0; j < L; ++j) rows[j] = j < count ? Batch::load_unaligned(x + j * leading + k) : Batch(0.0F);
    transpose(rows);
    for (std::int64_t i = 0; i < L; ++i) rows[i].store_aligned(panel + (k + i) * panel_width);
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

/// Copies rows [0, k_end) of `width` columns of B into panels, with zeros to the width of a panel.
Panels packed(Matrix<float> const& b, std::int64_t k_end, std::int64_t width, float* room) {
  std::int64_t const next = k_end * panel_width;
  auto const place = [&](std::int64_t column) { return room + column / panel_width * next + column % panel_width; };
  if (b.transposed) {
    for (std::int64_t column = 0; column < width; column += L)
      pack_transposed(b.data + column * b.leading, b.leading, std::min(L, width - column), k_end, place(column));
    return {room, panel_width, next};
  }
  for (std::int64_t k = 0; k < k_end; ++k) {
    float const* const row = b.data + k * b.leading;
    std::int64_t column = 0;
    for (; column + L <= width; column += L) {
      if (k + rows_ahead < k_end) __builtin_prefetch(row + rows_ahead * b.leading + column);
      Batch::load_unaligned(row + column).store_aligned(place(column) + k * panel_width);
    }
    if (column < width) load_some<float>(row + column, width - column, 0.0F).store_aligned(place(column) + k * panel_width);
  }
  return {room, panel_width, next};
}

/// What becomes of sums of products: alpha · sum + beta · C + row + matrix.
struct Finish {
  float alpha, beta;
  float const* row;     ///< of C's width, or null
  float const* matrix;  ///< with C's leading dimension, or null

  bool is_none() const { return alpha == 1 && beta == 0 && row == nullptr && matrix == nullptr; }

  void operator()(Batch const& sum, float* c, std::int64_t column, std::int64_t place, std::int64_t count) const {
    auto const load = [count](float const* x) { return count == L ? Batch::load_unaligned(x) : load_some<float>(x, count, 0.0F); };
    Batch result = Batch(alpha) * sum;
    if (beta != 0) result = xsimd::fma(Batch(beta), load(c + place), result);
    if (row != nullptr) result += load(row + column);
    if (matrix != nullptr) result += load(matrix + place);
    if (count == L) {
      result.store_unaligned(c + place);
    } else {
      store_some<float>(result, c + place, count);
    }
  }
};

/// The part of A's next rows that is asked for while a tile is made.
template <bool transposed>
struct Ahead {
  float const* data;
  std::int64_t leading;
  std::int64_t begin, end;    ///< of the rows, or transposed of the columns; equal where nothing is to be asked for
  std::int64_t at_once;       ///< of the columns, at a step
  std::int64_t rows_at_once;  ///< of C

  /// At a step of the tile, which goes through columns [k, k + step_width) of its own rows.
  void prefetch(std::int64_t step, std::int64_t k) const {
    if constexpr (transposed) {
      std::int64_t const first = begin + step * at_once;
      for (std::int64_t i = first; i < std::min(first + at_once, end); ++i) {
        __builtin_prefetch(data + i * leading);
        __builtin_prefetch(data + i * leading + tile_rows - 1);
      }
    } else {
      for (std::int64_t r = begin; r < end; ++r)
        for (std::int64_t i = 0; i < step_width; i += L) __builtin_prefetch(data + r * leading + k + i);
    }
  }
};

/// Columns [column, column + batches · L) of R rows of C, whose width they may pass. A's element [r, k] is a[r · leading] [k], or
/// transposed a[k · leading] [r]. What will be needed is asked for a little at every step, since only a few requests can be under way.
template <int R, int batches, bool transposed, bool asks>
void tile(std::int64_t k_end, Matrix<float> const& a, Ahead<transposed> const& ahead, float const* b, std::int64_t leading_b,
          Finish const& finish, float* c, std::int64_t leading_c, std::int64_t column, std::int64_t width) {
  Batch sums[R][batches];
  for (auto& row : sums) std::fill_n(row, batches, Batch(0.0F));
  auto const multiply = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      Batch right[batches];
      for (int i = 0; i < batches; ++i) right[i] = Batch::load_unaligned(b + k * leading_b + i * L);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        Batch const left(transposed ? a.data[k * a.leading + r] : a.data[r * a.leading + k]);
        for (int i = 0; i < batches; ++i) sums[r][i] = xsimd::fma(left, right[i], sums[r][i]);
      }
    }
  };
  if constexpr (asks) {
    for (std::int64_t step = 0; step * step_width < k_end; ++step) {
      ahead.prefetch(step, step * step_width);
      for (std::int64_t r = step * ahead.rows_at_once; r < std::min<std::int64_t>((step + 1) * ahead.rows_at_once, R); ++r)
        for (int i = 0; i < batches; ++i) __builtin_prefetch(c + r * leading_c + column + i * L, 1);
      multiply(step * step_width, std::min(k_end, (step + 1) * step_width));
    }
  } else {
    multiply(0, k_end);
  }
  width -= column;
  if (width >= batches * L && finish.is_none()) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      for (int i = 0; i < batches; ++i) sums[r][i].store_unaligned(c + r * leading_c + column + i * L);
    }
    return;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    for (int i = 0; i < batches; ++i) finish(sums[r][i], c, column + i * L, r * leading_c + column + i * L, std::min(L, width - i * L));
  }
}

/// x / y, upwards.
std::int64_t parts(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

/// R rows of C; while they are made A's next ones are asked for, if there are any.
template <int R, bool transposed, bool asks>
void row_of_tiles(std::int64_t k_end, Matrix<float> const& a, float const* next, Panels const& b, Finish const& finish, float* c,
                  std::int64_t leading_c, std::int64_t width) {
  Ahead<transposed> ahead{nullptr, a.leading, 0, 0, 0, 0};
  std::int64_t all = 0, share = 0;
  if (asks) {
    std::int64_t const steps = parts(k_end, step_width);
    if (next != nullptr) {
      all = transposed ? k_end : tile_rows;
      share = parts(all, parts(width, panel_width));
      ahead.data = next;
      ahead.at_once = parts(share, steps);
    }
    ahead.rows_at_once = parts(R, steps);
  }
  auto const* panel = b.data;
  std::int64_t column = 0;
  for (; column + L < width; column += panel_width, panel += b.next, ahead.begin = ahead.end) {
    ahead.end = std::min(ahead.begin + share, all);
    tile<R, 2, transposed, asks>(k_end, a, ahead, panel, b.leading, finish, c, leading_c, column, width);
  }
  ahead.end = all;
  if (column < width) tile<R, 1, transposed, asks>(k_end, a, ahead, panel, b.leading, finish, c, leading_c, column, width);
}

/// The last rows, fewer than tile_rows.
template <int R, bool transposed, class... Arguments>
void last_rows(std::int64_t rows, Arguments const&... arguments) {
  if constexpr (R > 0) {
    if (rows == R) return row_of_tiles<R, transposed, false>(arguments...);
    last_rows<R - 1, transposed>(rows, arguments...);
  }
}

template <bool transposed, bool asks>
void all_rows(std::int64_t rows, std::int64_t k_end, Matrix<float> a, Panels const& b, Finish finish, float* c, std::int64_t leading_c,
              std::int64_t width) {
  for (; rows >= tile_rows; rows -= tile_rows) {
    auto const* const next = a.data + (transposed ? tile_rows : tile_rows * a.leading);
    row_of_tiles<tile_rows, transposed, asks>(k_end, a, rows >= 2 * tile_rows ? next : nullptr, b, finish, c, leading_c, width);
    a.data = next;
    c += tile_rows * leading_c;
    if (finish.matrix != nullptr) finish.matrix += tile_rows * leading_c;
  }
  last_rows<tile_rows - 1, transposed>(rows, k_end, a, nullptr, b, finish, c, leading_c, width);
}

template <class T>
T const* from(T const* start, std::int64_t offset) {
  return start != nullptr ? start + offset : nullptr;
}

}  // namespace

bool tiles_are_faster(std::int64_t n, std::int64_t m, std::int64_t k, Matrix<float> const& a, Matrix<float> const& b) {
  // On a Sapphire Rapids, one thread, GFLOP/s of OpenBLAS's SkylakeX kernels / this:
  //   [512, 64] x [64, 64]ᵀ       92 / 112      [2048, 384] x [384, 384]ᵀ    112 / 118      [32, 32] x [32, 32]ᵀ         39 / 92
  //   [512, 256] x [256, 64]ᵀ    101 / 124      [2048, 384] x [384, 1536]    117 / 121      [32, 32] x [32, 32]         117 / 110
  //   [64, 512]ᵀ x [512, 64]      88 / 122      [384, 2048]ᵀ x [2048, 384]   105 / 119      [96, 60]ᵀ x [60, 96]        131 / 112
  //   [768, 128] x [128, 128]ᵀ   109 / 125      [1536, 2048]ᵀ x [2048, 384]  106 / 112      [1536, 1536] x [1536, 1536]  94 / 83
  //   [16, 512] x [512, 512]      56 / 94       [256, 768] x [768, 3072]      92 / 112      [256, 3072] x [3072, 768]ᵀ  108 / 107
  if (n < 16 || m < 16 || k < 16) return false;
  if (a.leading % 1024 == 0) return false;  // rows 4 KiB apart, which are not copied here, drive one another from the caches
  if (!b.transposed && n * m * k <= 1'000'000) return false;  // OpenBLAS leaves such factors where they are, too
  constexpr std::int64_t most = 600'000, most_transposed = L == 16 ? most : 1 << 15;
  return a.transposed ? n * m <= most_transposed : m * k <= most;
}

void tiled_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<float> a, Matrix<float> b, float beta, float* c,
                std::int64_t leading_c, Addend<float> const& addend) {
  thread_local std::vector<float, xsimd::aligned_allocator<float, 64>> room(depth * breadth);
  bool const asks = n * (k + m) > near;
  for (std::int64_t k0 = 0; k0 < k; k0 += depth) {
    auto const k_end = std::min(depth, k - k0);
    for (std::int64_t j = 0; j < m; j += breadth) {
      auto const width = std::min(breadth, m - j);
      Matrix<float> const right{b.data + (b.transposed ? j * b.leading + k0 : k0 * b.leading + j), b.leading, b.transposed};
      Matrix<float> const left{a.data + (a.transposed ? k0 * a.leading : k0), a.leading, a.transposed};
      bool const as_it_is = !b.transposed && width % L == 0 && n <= few_rows;
      Panels const panels = as_it_is ? Panels{right.data, right.leading, panel_width} : packed(right, k_end, width, room.data());
      Finish const finish = k0 == 0 ? Finish{alpha, beta, from(addend.row, j), from(addend.matrix, j)} : Finish{alpha, 1, nullptr, nullptr};
      auto const make = a.transposed ? asks ? all_rows<true, true> : all_rows<true, false>
                        : asks ? all_rows<false, true>
                                     : all_rows<false, false>;
      make(n, k_end, left, panels, finish, c + j, leading_c, width);
    }
  }
}

}  // namespace heed::kernels
