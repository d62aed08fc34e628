#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace heed::kernels {

/// Adds partial sums along a binary tree: the error of rounding grows with the logarithm of their number and not with the number (Higham
/// 1993). The tree is that of their numbers, and one that is missing is 0: zeros, and partial sums of zeros, change no bit. `Partial` has
/// +=.
template <class Partial>
class PairwiseSum {
 public:
  /// Adds partial sum `number`, which fill(partial) writes; numbers grow from call to call.
  template <class Fill>
  void add_made(std::uint64_t number, Fill const& fill) {
    while (depth_ > 1 && apart(numbers_[depth_ - 2], numbers_[depth_ - 1]) < apart(numbers_[depth_ - 1], number)) merge();
    numbers_[depth_] = number;
    fill(levels_[depth_++]);
  }
  void add(std::uint64_t number, Partial const& partial) {
    add_made(number, [&](Partial& to) { to = partial; });
  }
  /// The sum of all, and `none` where there were none.
  Partial total(Partial const& none) {
    while (depth_ > 1) merge();
    return depth_ == 0 ? none : levels_[0];
  }

 private:
  /// How far above the leaves two of them meet.
  static auto apart(std::uint64_t a, std::uint64_t b) { return std::bit_width(a ^ b); }  // its type is the library's
  void merge() {
    --depth_;
    levels_[depth_ - 1] += levels_[depth_];
  }

  std::array<Partial, 65> levels_;  // each of more than the next one
  std::array<std::uint64_t, 65> numbers_;
  std::size_t depth_ = 0;
};

/// A partial sum of so many columns, which are a few registers.
inline constexpr std::int64_t columns_at_once = 64;
template <class T>
struct Columns {
  alignas(64) T values[columns_at_once];
  Columns& operator+=(Columns const& other) {
    for (std::int64_t c = 0; c < columns_at_once; ++c) values[c] += other.values[c];
    return *this;
  }
};

/// So many rows are added one after another before sums are added in pairs.
inline constexpr std::int64_t rows_of_partial_sum = 32;

}  // namespace heed::kernels
