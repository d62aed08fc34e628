// C is made in tiles of `tile_rows` × 2 batches, as many as there are registers for, by outer products: a column of A's tile, number by
// number, times a row of B. B is copied panel by panel, so that it comes from the first cache; Goto & van de Geijn 2008 have the names.

#include "autograd/kernels/gemm_narrow.hpp"

#include <algorithm>
#include <vector>

#include "autograd/kernels/rows.hpp"

namespace heed::kernels {

namespace {

using Batch = Lanes<float>;
constexpr std::int64_t L = lanes<float>;

constexpr int tile_rows = L == 16 ? 14 : 6;  // 28 + 2 + 1 registers of 32, 12 + 2 + 1 of 16
constexpr std::int64_t panel_width = 2 * L;
constexpr std::int64_t depth = 256, breadth = 256;  // of what is copied of B at a time: 256 KB, for the second cache
constexpr std::int64_t few_rows = 64;               // of A, for which B's rows are read where they are

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

/// panel[k, j] = x[k, j] for j < count ≤ L, 0 beyond; k < k_end.
void pack(float const* x, std::int64_t leading, std::int64_t count, std::int64_t k_end, float* panel) {
  for (std::int64_t k = 0; k < k_end; ++k) {
    auto const row = count == L ? Batch::load_unaligned(x + k * leading) : load_some<float>(x + k * leading, count, 0.0F);
    row.store_aligned(panel + k * panel_width);
  }
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
  for (std::int64_t column = 0; column < width; column += L) {
    float* const panel = room + column / panel_width * k_end * panel_width + column % panel_width;
    auto const* const from = b.data + (b.transposed ? column * b.leading : column);
    (b.transposed ? pack_transposed : pack)(from, b.leading, std::min(L, width - column), k_end, panel);
  }
  return {room, panel_width, k_end * panel_width};
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

/// Tiles of R rows along C's columns [0, width). A's element [r, k] is a[r · leading] [k], or transposed a[k · leading] [r].
template <int R, int batches, bool transposed>
void tile(std::int64_t k_end, Matrix<float> const& a, float const* b, std::int64_t leading_b, Finish const& finish, float* c,
          std::int64_t leading_c, std::int64_t column, std::int64_t width) {
  Batch sums[R][batches];
  for (auto& row : sums) std::fill_n(row, batches, Batch(0.0F));
  for (std::int64_t k = 0; k < k_end; ++k) {
    Batch right[batches];
    for (int i = 0; i < batches; ++i) right[i] = Batch::load_unaligned(b + k * leading_b + i * L);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      Batch const left(transposed ? a.data[k * a.leading + r] : a.data[r * a.leading + k]);
      for (int i = 0; i < batches; ++i) sums[r][i] = xsimd::fma(left, right[i], sums[r][i]);
    }
  }
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

template <int R, bool transposed>
void row_of_tiles(std::int64_t k_end, Matrix<float> const& a, Panels const& b, Finish const& finish, float* c, std::int64_t leading_c,
                  std::int64_t width) {
  std::int64_t column = 0;
  auto const* panel = b.data;
  for (; column + L < width; column += panel_width, panel += b.next)
    tile<R, 2, transposed>(k_end, a, panel, b.leading, finish, c, leading_c, column, width - column);
  if (column < width) tile<R, 1, transposed>(k_end, a, panel, b.leading, finish, c, leading_c, column, width - column);
}

/// The last rows, fewer than tile_rows.
template <int R, bool transposed, class... Arguments>
void last_rows(std::int64_t rows, Arguments const&... arguments) {
  if constexpr (R > 0) {
    if (rows == R) return row_of_tiles<R, transposed>(arguments...);
    last_rows<R - 1, transposed>(rows, arguments...);
  }
}

template <bool transposed>
void all_rows(std::int64_t rows, std::int64_t k_end, Matrix<float> a, Panels const& b, Finish finish, float* c, std::int64_t leading_c,
              std::int64_t width) {
  for (; rows >= tile_rows; rows -= tile_rows) {
    row_of_tiles<tile_rows, transposed>(k_end, a, b, finish, c, leading_c, width);
    a.data += transposed ? tile_rows : tile_rows * a.leading;
    c += tile_rows * leading_c;
    if (finish.matrix != nullptr) finish.matrix += tile_rows * leading_c;
  }
  last_rows<tile_rows - 1, transposed>(rows, k_end, a, b, finish, c, leading_c, width);
}

template <class T>
T const* from(T const* start, std::int64_t offset) {
  return start != nullptr ? start + offset : nullptr;
}

}  // namespace

bool narrow_is_faster(std::int64_t n, std::int64_t m, std::int64_t k, bool left_transposed, bool right_transposed) {
  // On a Sapphire Rapids, one thread, GFLOP/s of OpenBLAS's SkylakeX kernels / this; of 121 at most:
  //   [512, 64] x [64, 64]ᵀ        88 / 110      [768, 128] x [128, 128]ᵀ      108 / 121      [768, 128] x [128, 512]ᵀ    109 / 110
  //   [512, 256] x [256, 64]ᵀ     101 / 125      [64, 512]  x [512, 64]         87 / 118      [2048, 384] x [384, 384]ᵀ   112 / 102
  //   [64, 64] x [64, 256]ᵀ        78 / 99       [128, 768] x [768, 128]       104 / 120      [64, 64] x [64, 32]         122 / 107
  if (n < 16 || m < 16 || k < 16) return false;
  bool const copied_by_openblas = right_transposed || n * m * k > 1 << 18;  // smaller ones it leaves where they are, too
  return copied_by_openblas && (left_transposed ? n * m <= 1 << 16 : m * k <= 1 << 15);
}

void narrow_gemm(std::int64_t n, std::int64_t m, std::int64_t k, float alpha, Matrix<float> a, Matrix<float> b, float beta, float* c,
                 std::int64_t leading_c, Addend<float> const& addend) {
  thread_local std::vector<float, xsimd::aligned_allocator<float, 64>> room(depth * breadth);
  for (std::int64_t k0 = 0; k0 < k; k0 += depth) {
    auto const k_end = std::min(depth, k - k0);
    for (std::int64_t j = 0; j < m; j += breadth) {
      auto const width = std::min(breadth, m - j);
      Matrix<float> const right{b.data + (b.transposed ? j * b.leading + k0 : k0 * b.leading + j), b.leading, b.transposed};
      Matrix<float> const left{a.data + (a.transposed ? k0 * a.leading : k0), a.leading, a.transposed};
      bool const as_it_is = !b.transposed && width % L == 0 && n <= few_rows;
      Panels const panels = as_it_is ? Panels{right.data, right.leading, panel_width} : packed(right, k_end, width, room.data());
      Finish const finish = k0 == 0 ? Finish{alpha, beta, from(addend.row, j), from(addend.matrix, j)} : Finish{alpha, 1, nullptr, nullptr};
      (a.transposed ? all_rows<true> : all_rows<false>)(n, k_end, left, panels, finish, c + j, leading_c, width);
    }
  }
}

}  // namespace heed::kernels
