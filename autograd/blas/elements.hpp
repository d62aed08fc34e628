#pragma once

#include "autograd/index.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/kernels/simd/pairs.hpp"

/// Element types of the tiled kernel: 32-bit words, held in batches of float32. A policy defines what a word holds.
namespace heed::kernels {

/// x / y, rounded up.
constexpr Index parts(Index x, Index y) { return (x + y - 1) / y; }

/// The first `count` numbers at x, zeros beyond; nothing is read if count ≤ 0.
inline WordBatch load_up_to(float const* x, Index count) {
  if (count >= lanes<float>) return WordBatch::load_unaligned(x);
  return count > 0 ? load_some<float>(x, count, 0.0F) : WordBatch(0.0F);
}

/// Arithmetic of words that are float32 numbers.
struct FusedMultiplyAdd {
  /// sum + a · b, of words.
  static WordBatch multiply_add(WordBatch const& a, WordBatch const& b, WordBatch const& sum) { return xsimd::fma(a, b, sum); }
};

/// A word is a float32 number.
struct Numbers {
  using Arithmetic = FusedMultiplyAdd;
  static constexpr Index per_word = 1;       ///< numbers
  static constexpr bool as_they_are = true;  ///< factors may be read in place
  /// Words at the same position along k: columns [0, L) of a matrix [k, m], of which `rows` and `columns` are left at x; zeros beyond.
  static WordBatch across(float const* x, Index /*leading*/, Index /*rows*/, Index columns) { return load_up_to(x, columns); }
  /// Consecutive words along k: of a row of a matrix [m, k], of which `numbers` are left at x; zeros beyond.
  static WordBatch along(float const* x, Index numbers) { return load_up_to(x, numbers); }
};

/// A word is a number rounded to bfloat16, stored as float32: for processors without instructions for pairs.
struct Rounded : Numbers {
  static constexpr bool as_they_are = false;
  static WordBatch across(float const* x, Index /*leading*/, Index /*rows*/, Index columns) {
    return rounded_to_bfloat16(load_up_to(x, columns));
  }
  static WordBatch along(float const* x, Index numbers) { return rounded_to_bfloat16(load_up_to(x, numbers)); }
};

#ifdef __AVX512BF16__

/// Whether this build has instructions for pairs.
constexpr bool has_pairs = true;

/// Arithmetic of words that are two bfloat16 numbers.
struct DotOfPairs {
  /// sum + a₀ · b₀ + a₁ · b₁, of words.
  static WordBatch multiply_add(WordBatch const& a, WordBatch const& b, WordBatch const& sum) { return dot_pairs(a, b, sum); }
};

/// A word is two bfloat16 numbers that are consecutive along k.
struct BFloat16Pairs {
  using Arithmetic = DotOfPairs;
  static constexpr Index per_word = 2;
  static constexpr bool as_they_are = false;
  static WordBatch across(float const* x, Index leading, Index rows, Index columns) {
    return interleaved(load_up_to(x, columns), load_up_to(x + leading, rows > 1 ? columns : 0));
  }
  static WordBatch along(float const* x, Index numbers) {
    return pairs_of(load_up_to(x, numbers), load_up_to(x + lanes<float>, numbers - lanes<float>));
  }
};

#else

constexpr bool has_pairs = false;
struct BFloat16Pairs;

#endif

}  // namespace heed::kernels
