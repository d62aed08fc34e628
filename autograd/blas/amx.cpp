// C is computed in squares of 32 × 32: four tiles of sums, for two tiles of A's rows and two of B's columns; a tile is sixteen rows of 64
// bytes. Both factors are first rounded and copied into tiles: B as a whole and once for all threads, A's rows as a thread needs them.

#include <algorithm>
#include <vector>

#include "autograd/blas/gemm.hpp"

#if defined(__AMX_BF16__) && defined(__AVX512BF16__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "autograd/blas/elements.hpp"
#include "autograd/memory.hpp"
#include "autograd/parallel.hpp"
#include "autograd/processor/processor.hpp"

namespace heed::kernels {

#if defined(__AMX_BF16__) && defined(__AVX512BF16__)

namespace {

/// A bfloat16 number: the upper half of a float32.
using BFloat16Bits = std::uint16_t;

constexpr Index side = 16, inner = 32;   // rows of a tile; numbers of k in it
constexpr Index numbers = side * inner;  // per tile
constexpr Index square = 2 * side;       // rows and columns of a square of C
constexpr Index depth = 512;             // numbers of k per sum of a square: 32 KB of A, for the first-level cache
constexpr Index max_of_b = 600'000;      // numbers of B that all rows of A use in a sweep: 1.2 MB, for the second-level cache

__mmask16 first(Index count) { return static_cast<__mmask16>((1U << std::clamp<Index>(count, 0, 16)) - 1); }

void store(BFloat16Bits* to, __m512bh x) { _mm512_store_si512(to, reinterpret_cast<__m512i const&>(x)); }

/// A tile of rows: row i is x[i, 0 … 31], zeros beyond `rows` and `columns`. Prefetches what is `ahead` numbers on.
void pack_rows(float const* x, Index leading, Index rows, Index columns, Index ahead, BFloat16Bits* tile) {
  __mmask16 const low = first(columns), high = first(columns - side);
  for (Index i = 0; i < side; ++i) {
    if (i >= rows) {
      _mm512_store_si512(tile + i * inner, _mm512_setzero_si512());
    } else {
      float const* const row = x + i * leading;
      __builtin_prefetch(row + ahead);
      __builtin_prefetch(row + ahead + side);
      store(tile + i * inner, _mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(high, row + side), _mm512_maskz_loadu_ps(low, row)));
    }
  }
}

/// A tile of pairs of rows: row p is x[2p, 0], x[2p + 1, 0], x[2p, 1], …
void pack_pairs(float const* x, Index leading, Index rows, Index columns, Index ahead, BFloat16Bits* tile) {
  alignas(64) static constexpr std::uint16_t by_turns[] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                           8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  __m512i const order = _mm512_load_si512(by_turns);
  __mmask16 const mask = first(columns);
  for (Index p = 0; p < side; ++p) {
    auto const row = [&](Index r) { return _mm512_maskz_loadu_ps(r < rows ? mask : __mmask16{0}, x + (r < rows ? r : 0) * leading); };
    __builtin_prefetch(x + 2 * p * leading + ahead);
    __builtin_prefetch(x + (2 * p + 1) * leading + ahead);
    __m512bh const both = _mm512_cvtne2ps_pbh(row(2 * p + 1), row(2 * p));
    _mm512_store_si512(tile + p * inner, _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i const&>(both)));
  }
}

/// The transpose of a tile of pairs.
template <class Pack>
void pack_transposed(Pack const& pack, BFloat16Bits* tile) {
  alignas(64) BFloat16Bits pairs[numbers];
  pack(pairs);
  transpose(reinterpret_cast<float const*>(pairs), side, reinterpret_cast<float*>(tile), side);
}

/// Rows [0, rows) ≤ 16 and columns [0, columns) ≤ 32 of A, whose element [i, k] is at a [i, k] or transposed at a [k, i].
void pack_left(Matrix<float> const& a, Index rows, Index columns, BFloat16Bits* tile) {
  if (!a.transposed) return pack_rows(a.data, a.leading, rows, columns, inner, tile);
  pack_transposed([&](BFloat16Bits* pairs) { pack_pairs(a.data, a.leading, columns, rows, inner * a.leading, pairs); }, tile);
}

/// Rows [0, rows) ≤ 32 and columns [0, columns) ≤ 16 of B.
void pack_right(Matrix<float> const& b, Index rows, Index columns, BFloat16Bits* tile) {
  if (!b.transposed) return pack_pairs(b.data, b.leading, rows, columns, 2 * side, tile);
  pack_transposed([&](BFloat16Bits* pairs) { pack_rows(b.data, b.leading, columns, rows, inner, pairs); }, tile);
}

/// The submatrix that begins at row i, column j of x.
Matrix<float> part(Matrix<float> const& x, Index i, Index j) {
  return {x.data + (x.transposed ? j * x.leading + i : i * x.leading + j), x.leading, x.transposed};
}

/// Numbers of B in tiles: those of 16 columns after each other, along k.
Index room_for_right(Index k, Index m) { return parts(m, side) * parts(k, inner) * numbers; }

/// B in units that threads may share: 16 columns, or 32 rows if those are contiguous.
Index units(Matrix<float> const& b, Index k, Index m) { return b.transposed ? parts(m, side) : parts(k, inner); }

void pack_unit(Matrix<float> const& b, Index k, Index m, Index unit, BFloat16Bits* right) {
  auto const pack = [&](Index row, Index column) {
    pack_right(part(b, row * inner, column * side), std::min(inner, k - row * inner), std::min(side, m - column * side),
               right + (column * parts(k, inner) + row) * numbers);
  };
  for (Index row = 0; b.transposed && row < parts(k, inner); ++row) pack(row, unit);
  for (Index column = 0; !b.transposed && column < parts(m, side); ++column) pack(unit, column);
}

/// This thread's; which: 0 or 1. Not cleared.
BFloat16Bits* room(std::size_t which, Index count) {
  thread_local std::vector<BFloat16Bits, xsimd::aligned_allocator<BFloat16Bits, 64>> rooms[2];
  if (std::ssize(rooms[which]) < count) rooms[which].resize(static_cast<std::size_t>(count));
  return rooms[which].data();
}

/// Configures this thread's tiles as sixteen rows of 64 bytes while it lives.
class Tiles {
 public:
  Tiles() {
    struct alignas(64) {
      std::uint8_t palette = 1, start = 0, reserved[14] = {};
      std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const configuration;
    _tile_loadconfig(&configuration);
  }
  ~Tiles() { _tile_release(); }
  Tiles(Tiles const&) = delete;
  Tiles& operator=(Tiles const&) = delete;
};

/// sums [32, 32] (as many tiles of it as are asked for) of `count` tiles along k; the second rows' and columns' tiles are `next` numbers
/// on.
template <bool two_rows, bool two_columns>
void sum_square(BFloat16Bits const* a, Index next_a, BFloat16Bits const* b, Index next_b, Index count, float* sums) {
  constexpr int bytes = 64, row_of_sums = square * sizeof(float);
  _tile_zero(0);
  if constexpr (two_columns) _tile_zero(1);
  if constexpr (two_rows) _tile_zero(2);
  if constexpr (two_rows && two_columns) _tile_zero(3);
  for (Index t = 0; t < count; ++t, a += numbers, b += numbers) {
    for (Index i = 0; i < numbers; i += inner) {  // the columns' tiles come from the second-level cache
      __builtin_prefetch(b + 2 * numbers + i);
      if constexpr (two_columns) __builtin_prefetch(b + next_b + 2 * numbers + i);
    }
    _tile_loadd(4, a, bytes);
    _tile_loadd(6, b, bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (two_columns) {
      _tile_loadd(7, b + next_b, bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (two_rows) {
      _tile_loadd(5, a + next_a, bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (two_rows && two_columns) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, row_of_sums);
  if constexpr (two_columns) _tile_stored(1, sums + side, row_of_sums);
  if constexpr (two_rows) _tile_stored(2, sums + side * square, row_of_sums);
  if constexpr (two_rows && two_columns) _tile_stored(3, sums + side * square + side, row_of_sums);
}

/// A product in sweeps over C's rows, each for a block of B.
class AmxProduct {
 public:
  /// `right`: B in tiles.
  AmxProduct(ProductFactors const& f, BFloat16Bits const* right, ProductResult const& to) : f_(f), right_(right), to_(to) {
    constexpr Index deepest = 3 * depth;
    Index const k = std::max<Index>(f.k, 1);
    deep_ = parts(parts(k, parts(k, deepest)), depth) * depth;
    wide_ = std::max(square, max_of_b / std::min(deep_, k) / square * square);
  }

  Index sweeps() const { return parts(f_.k, deep_) * parts(f_.m, wide_); }

  void make(Index sweep, Index begin, Index end) const {
    Tiles const tiles;
    Index const k0 = sweep / parts(f_.m, wide_) * deep_, k1 = std::min(f_.k, k0 + deep_);
    Index const j0 = sweep % parts(f_.m, wide_) * wide_, j1 = std::min(f_.m, j0 + wide_);
    for (Index i = begin; i < end; i += square) make_rows(i, std::min(square, end - i), k0, k1, j0, j1);
  }

 private:
  void make_rows(Index i, Index rows, Index k0, Index k1, Index j0, Index j1) const {
    BFloat16Bits* const left = room(0, 2 * side * (depth + inner));
    for (Index k = k0; k < k1; k += depth) {
      Index const count = parts(std::min(depth, k1 - k), inner), next = count * numbers;
      for (Index t = 0; t < count; ++t) {
        Index const at = k + t * inner, columns = std::min(inner, k1 - at);
        pack_left(part(f_.a, i, at), std::min(rows, side), columns, left + t * numbers);
        if (rows > side) pack_left(part(f_.a, i + side, at), rows - side, columns, left + next + t * numbers);
      }
      if (to_.sum != nullptr && j0 == 0) to_.sum->add(i, i + rows, k, std::min(depth, k1 - k), part(f_.a, i, k).data, f_.a.leading);
      for (Index j = j0; j < j1; j += square) make_square(left, next, count, i, rows, k, j, std::min(square, j1 - j));
    }
  }

  void make_square(BFloat16Bits const* left, Index next_left, Index count, Index i, Index rows, Index k, Index j, Index columns) const {
    alignas(64) float sums[square * square];
    Index const next_right = parts(f_.k, inner) * numbers;
    BFloat16Bits const* const right = right_ + j / side * next_right + k / inner * numbers;
    auto const& sum = rows > side ? (columns > side ? sum_square<true, true> : sum_square<true, false>)
                                  : (columns > side ? sum_square<false, true> : sum_square<false, false>);
    sum(left, next_left, right, next_right, count, sums);
    Finish finish{to_.alpha, k == 0 ? to_.beta : 1, nullptr, nullptr};
    if (k == 0) finish.row = to_.addend.row;
    for (Index r = 0; r < rows; ++r) {
      float* const c = to_.c + (i + r) * to_.leading;
      if (k == 0 && to_.addend.matrix != nullptr) finish.matrix = to_.addend.matrix + (i + r) * to_.leading;
      for (Index s = 0; s < columns; s += side) {
        auto const batch = Lanes<float>::load_aligned(sums + r * square + s);
        if (columns - s >= side) {
          Lanes<float> whole[1][1] = {{batch}};
          finish.all<1, 1>(whole, c, to_.leading, j + s);
        } else {
          finish.some(batch, c, j + s, j + s, columns - s);
        }
      }
    }
  }

  ProductFactors f_;
  BFloat16Bits const* right_;
  ProductResult to_;
  Index deep_, wide_;  // of a block of B
};

}  // namespace

bool has_amx() {
  constexpr int request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static bool const here = processor_has("AMX-BF16") && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return here;
}

void amx_gemm(ProductFactors const& factors, ProductResult const& result) {
  auto const& [n, m, k, a, b] = factors;
  BFloat16Bits* const right = room(1, room_for_right(k, m));
  for (Index unit = 0; unit < units(b, k, m); ++unit) pack_unit(b, k, m, unit, right);
  AmxProduct const product(factors, right, result);
  for (Index sweep = 0; sweep < product.sweeps(); ++sweep) product.make(sweep, 0, n);
}

void parallel_amx_gemm(ProductFactors const& factors, ProductResult const& result) {
  auto const& [n, m, k, a, b] = factors;
  constexpr double copying = 0.3, multiply_add = 0.003;  // nanoseconds of a number, about
  Buffer const buffer(static_cast<std::size_t>(room_for_right(k, m)) * sizeof(BFloat16Bits));
  auto* const right = reinterpret_cast<BFloat16Bits*>(buffer.data());
  parallel_each(units(b, k, m), copying * static_cast<double>(k * m) / static_cast<double>(units(b, k, m)),
                [&](Index unit) { pack_unit(factors.b, factors.k, factors.m, unit, right); });
  AmxProduct const product(factors, right, result);
  parallel_sweeps(
      product.sweeps(), n, multiply_add * static_cast<double>(m * k) / static_cast<double>(product.sweeps()),
      [&](Index sweep, Index begin, Index end) { product.make(sweep, begin, end); },
      result.sum != nullptr ? result.sum->stretch() : square);
}

#else

bool has_amx() { return false; }
void amx_gemm(ProductFactors const&, ProductResult const&) {}
void parallel_amx_gemm(ProductFactors const&, ProductResult const&) {}

#endif

}  // namespace heed::kernels
