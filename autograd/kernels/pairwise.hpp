#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "autograd/index.hpp"

namespace heed::kernels {

/// Adds partial sums along a binary tree, so that the rounding error grows with the logarithm of their number (Higham 1993). A sum's place
/// in the tree depends on its number alone; missing ones count as 0, so that leaving out sums of zeros changes no bit. `Partial` needs +=.
template <class Partial>
class PairwiseSum {
 public:
  /// Adds partial sum `number`, which fill(partial) writes; numbers must increase.
  template <class Fill>
  void add_made(std::uint64_t number, Fill const& fill) {
    while (depth_ > 1 && apart(numbers_[depth_ - 2], numbers_[depth_ - 1]) < apart(numbers_[depth_ - 1], number)) merge();
    numbers_[depth_] = number;
    fill(levels_[depth_++]);
  }
  void add(std::uint64_t number, Partial const& partial) {
    add_made(number, [&](Partial& to) { to = partial; });
  }
  /// The total; `none` if nothing was added.
  Partial total(Partial const& none) {
    while (depth_ > 1) merge();
    return depth_ == 0 ? none : levels_[0];
  }

 private:
  /// The level of the tree at which two partial sums meet.
  static auto apart(std::uint64_t a, std::uint64_t b) { return std::bit_width(a ^ b); }  // the library decides its type
  void merge() {
    --depth_;
    levels_[depth_ - 1] += levels_[depth_];
  }

  std::array<Partial, 65> levels_;  // each covers more than the next one
  std::array<std::uint64_t, 65> numbers_;
  std::size_t depth_ = 0;
};

/// Columns of a partial sum, which fit a few registers.
inline constexpr Index columns_at_once = 64;
template <class T>
struct Columns {
  alignas(64) T values[columns_at_once];
  Columns& operator+=(Columns const& other) {
    for (Index c = 0; c < columns_at_once; ++c) values[c] += other.values[c];
    return *this;
  }
};

/// Rows that are added one after another before pairwise summation.
inline constexpr Index rows_of_partial_sum = 32;

}  // namespace heed::kernels
