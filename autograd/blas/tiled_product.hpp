#pragma once

#include <algorithm>
#include <vector>

#include "autograd/blas/gemm.hpp"
#include "autograd/blas/tile.hpp"
#include "autograd/parallel.hpp"

/// Blocked matrix products (Goto & van de Geijn 2008): B is copied in panels, block by block, to fit the second-level cache; A is read in
/// place, or copied a few rows at a time to fit the first-level cache.
namespace heed::kernels {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr bool has_32_registers = true;
#else
constexpr bool has_32_registers = false;
#endif
using Wide = TileShape<6, has_32_registers ? 4 : 2>;                             // 24 + 4 + 1 registers of 32, 12 + 2 + 1 of 16
using Narrow = TileShape<has_32_registers ? 14 : 12, has_32_registers ? 2 : 1>;  // 28 + 2 + 1, 12 + 1 + 1: for a C of no more columns

constexpr Index depth = 384;                               // words of B's columns that are copied at a time
constexpr Index breadth = lanes<float> == 16 ? 384 : 192;  // columns: 590 KB for a second cache of 1 MB, or 295 KB for 512 KB
constexpr Index near = 180'000;                            // numbers of A and C that stay in the caches without copies: 720 KB
constexpr Index few_rows = 64;                             // rows of A up to which B is read in place
constexpr Index page_numbers = 1024;                       // numbers: rows this far apart evict one another from the caches

/// This thread's buffer for a block of B.
float* room_for_panels();
/// This thread's buffer for a group of A's rows.
float* room_for_rows();

/// The columns of the remaining batches, at most `batches`. Only whole tiles prefetch: others are rare, and instantiations cost code.
template <class Arithmetic, class S, int R, int batches, bool transposed, bool prefetches, class... Arguments>
void tile_of(Index count, Arguments&... arguments) {
  if constexpr (batches > 0) {
    if (count == batches)
      return tile < Arithmetic, R, batches, transposed, prefetches && R == S::rows && batches == S::batches > (arguments...);
    tile_of<Arithmetic, S, R, batches - 1, transposed, prefetches>(count, arguments...);
  }
}

/// R rows of C, all columns.
template <class Arithmetic, class S, int R, bool transposed, bool prefetches>
void row_of_tiles(Index steps, Matrix<float> const& a, RightPanels const& b, Prefetch& next, ProductTarget to) {
  auto const* panel = b.data;
  for (; to.column < to.width; to.column += S::width, panel += b.next) {
    tile_of<Arithmetic, S, R, S::batches, transposed, prefetches>(std::min<Index>(S::batches, parts(to.width - to.column, lanes<float>)),
                                                                  steps, a.data, a.leading, panel, b.leading, next, to);
  }
}

/// At most R rows of C.
template <class Arithmetic, class S, int R, bool transposed, bool prefetches, class... Arguments>
void few_rows_of_tiles(Index rows, Arguments&... arguments) {
  if constexpr (R > 0) {
    if (rows == R) return row_of_tiles < Arithmetic, S, R, transposed, prefetches && R == S::rows > (arguments...);
    few_rows_of_tiles<Arithmetic, S, R - 1, transposed, prefetches>(rows, arguments...);
  }
}

/// Any number of rows of C.
template <class Arithmetic, class S, bool transposed, bool prefetches>
void rows_of_tiles(Index rows, Index steps, Matrix<float> a, RightPanels const& b, Prefetch next, ProductTarget to) {
  while (rows > 0) {
    Index const rest = rows % S::rows;
    // A tile of few rows is limited by latency: the last two tiles share the remaining rows.
    bool const halved = rows < 2 * S::rows && rows > S::rows && rest < S::rows / 3;
    Index const count = halved ? parts(rows, 2) : std::min<Index>(rows, S::rows);
    few_rows_of_tiles<Arithmetic, S, S::rows, transposed, prefetches>(count, steps, a, b, next, to);
    rows -= count;
    a.data += transposed ? count : count * a.leading;
    to.c += count * to.leading;
    if (to.finish.matrix != nullptr) to.finish.matrix += count * to.leading;
  }
}

/// A product in sweeps over C's rows, one for each block of B: stretches of k in the outer loop, blocks of columns in the inner one.
template <class Element, class S>
class TiledProduct {
 public:
  TiledProduct(ProductFactors const& f, ProductResult const& to) : f_(f), to_(to) {
    auto const& [n, m, k, a, b] = f;
    constexpr bool always = !Element::as_they_are;
    bool const in_order = !always && !b.transposed && m % lanes<float> == 0 && b.leading % page_numbers != 0;
    // With AVX-512, for [128, 768]ᵀ x [768, 512] on an Intel Emerald Rapids: 637 µs, where copying both takes 739.
    by_blocks_ = in_order && lanes<float> == 16 && a.transposed && a.leading % page_numbers != 0 && n * (k + m) > near / 2 &&
                 stretch() * (n + m) <= near;
    copies_left_ = always || (a.transposed && !by_blocks_ && (m > copied_from || a.leading % page_numbers == 0));
    copies_right_ = !in_order || (n > few_rows && !by_blocks_);
    prefetches_ = by_blocks_ || n * (k + m) > near;
    bool const at_once = !copies_left_ && (by_blocks_ || !prefetches_);
    Index const steps = words<Element>(std::min(k, stretch()));
    group_ = at_once ? n : S::rows * (a.transposed ? max_tiles : std::clamp<Index>(depth / steps, 1, max_tiles));
  }

  Index sweeps() const { return parts(f_.k, stretch()) * parts(f_.m, breadth); }

  /// A thread's state within the current sweep.
  struct ThreadState {
    Index sweep = -1;
    RightPanels panels{};
  };

  void make(ThreadState& state, Index sweep, Index begin, Index end) const {
    ColumnBlock const block = block_of(sweep);
    if (state.sweep != sweep) state = {sweep, panels(block)};
    for (Index i = begin, rows = 0; i < end; i += rows) {
      rows = end - i < group_ + S::rows ? end - i : group_;
      make_rows(block, state.panels, i, rows, i + rows < end ? std::min(group_, end - i - rows) : std::min(group_, f_.n - i - rows));
    }
  }

 private:
  static constexpr Index copied_from = 128;  // columns of C from which a copy of A pays
  static constexpr Index max_tiles = 8;      // tiles whose rows are copied together

  struct ColumnBlock {
    Index k0, k, j0, m;  ///< rows [k0, k0 + k) and columns [j0, j0 + m) of B
  };

  /// Numbers per stretch of k. A transposed A takes one cache line for each of its words.
  Index stretch() const { return (f_.a.transposed ? depth / 2 : depth) * Element::per_word; }

  ColumnBlock block_of(Index sweep) const {
    Index const k0 = sweep / parts(f_.m, breadth) * stretch(), j0 = sweep % parts(f_.m, breadth) * breadth;
    return {k0, std::min(stretch(), f_.k - k0), j0, std::min(breadth, f_.m - j0)};
  }

  /// The part of A's rows from i on that belongs to a block.
  float const* left_at(Index i, ColumnBlock const& block) const {
    return f_.a.data + (f_.a.transposed ? block.k0 * f_.a.leading + i : i * f_.a.leading + block.k0);
  }

  RightPanels panels(ColumnBlock const& block) const {
    auto const& b = f_.b;
    float const* const data = b.data + (b.transposed ? block.j0 * b.leading + block.k0 : block.k0 * b.leading + block.j0);
    if (!copies_right_) return {data, b.leading, S::width};
    return packed<Element>({data, b.leading, b.transposed}, block.k, block.m, S::width, room_for_panels());
  }

  /// Prefetches the next `following` rows or, by_blocks_, the next block of both factors.
  Prefetch prefetch(ColumnBlock const& block, Index i, Index rows, Index following) const {
    Index const steps = parts(rows, S::rows) * parts(block.m, S::width) * parts(words<Element>(block.k), step_width);
    if (by_blocks_) {
      Index const k0 = block.k0 + block.k, k = std::min(stretch(), f_.k - k0);
      if (k <= 0 || block.j0 > 0) return {};
      return Prefetch(f_.a.data + k0 * f_.a.leading, f_.a.leading, k, f_.n, f_.b.data + k0 * f_.b.leading, f_.b.leading, f_.m, steps);
    }
    if (following == 0 || !prefetches_) return {};
    float const* const next = left_at(i + rows, block);
    return f_.a.transposed ? Prefetch(next, f_.a.leading, block.k, following, steps)
                           : Prefetch(next, f_.a.leading, following, block.k, steps);
  }

  void make_rows(ColumnBlock const& block, RightPanels const& panels, Index i, Index rows, Index following) const {
    float const* const data = left_at(i, block);
    if (to_.sum != nullptr && block.j0 == 0) to_.sum->add(i, i + rows, block.k0, block.k, data, f_.a.leading);
    Matrix<float> const left = copies_left_ ? copied<Element>({data, f_.a.leading, f_.a.transposed}, rows, block.k, room_for_rows())
                                            : Matrix<float>{data, f_.a.leading, f_.a.transposed};
    Index const at = i * to_.leading + block.j0;
    auto const from = [](float const* x, Index offset) { return x != nullptr ? x + offset : nullptr; };
    Finish const finish = block.k0 == 0 ? Finish{to_.alpha, to_.beta, from(to_.addend.row, block.j0), from(to_.addend.matrix, at)}
                                        : Finish{to_.alpha, 1, nullptr, nullptr};
    using Arithmetic = typename Element::Arithmetic;
    auto const& make = left.transposed
                           ? (prefetches_ ? rows_of_tiles<Arithmetic, S, true, true> : rows_of_tiles<Arithmetic, S, true, false>)
                           : (prefetches_ ? rows_of_tiles<Arithmetic, S, false, true> : rows_of_tiles<Arithmetic, S, false, false>);
    make(rows, words<Element>(block.k), left, panels, prefetch(block, i, rows, following), {finish, to_.c + at, to_.leading, 0, block.m});
  }

  ProductFactors f_;
  ProductResult to_;
  bool by_blocks_;  ///< both factors are read in place: the current block and the next one fit the second-level cache
  bool copies_left_, copies_right_, prefetches_;
  Index group_;  ///< rows of A that are copied or prefetched together
};

template <class Element, class S>
void make_here(ProductFactors const& factors, ProductResult const& result) {
  TiledProduct<Element, S> const product(factors, result);
  typename TiledProduct<Element, S>::ThreadState state;
  for (Index sweep = 0; sweep < product.sweeps(); ++sweep) product.make(state, sweep, 0, factors.n);
}

template <class Element, class S>
void make_in_parallel(ProductFactors const& factors, ProductResult const& result) {
  auto const& [n, m, k, a, b] = factors;
  TiledProduct<Element, S> const product(factors, result);
  std::vector<typename TiledProduct<Element, S>::ThreadState> states(static_cast<std::size_t>(threads()));
  constexpr double multiply_add = 0.02 / Element::per_word;  // nanoseconds, about
  parallel_sweeps(
      product.sweeps(), n, multiply_add * static_cast<double>(m * k) / static_cast<double>(product.sweeps()),
      [&](Index sweep, Index begin, Index end) { product.make(heed::at(states, thread_index()), sweep, begin, end); },
      result.sum != nullptr ? result.sum->stretch() : S::rows);
}

template <class Element>
void tiled_gemm(ProductFactors const& factors, ProductResult const& result) {
  factors.m > Narrow::width ? make_here<Element, Wide>(factors, result) : make_here<Element, Narrow>(factors, result);
}

template <class Element>
void parallel_tiled_gemm(ProductFactors const& factors, ProductResult const& result) {
  factors.m > Narrow::width ? make_in_parallel<Element, Wide>(factors, result) : make_in_parallel<Element, Narrow>(factors, result);
}

}  // namespace heed::kernels
