#pragma once

#include <algorithm>
#include <vector>

#include "autograd/attention/attention.hpp"
#include "autograd/index.hpp"

namespace heed::kernels {

inline constexpr Index block_rows = 64;  // queries whose scores are held at once
inline constexpr Index tile_keys = 256;  // keys of these, if rows need not be whole: scores, keys and values fit the second-level cache

/// Which keys a block of a head's queries sees, tile by tile, and which of the pairs its products are made of.
class BlockOfRows {
 public:
  /// `tile`: keys of a tile; `halves`: whether pairs that by_rows() leaves out may hold anything.
  BlockOfRows(Index tile, bool halves) : tile_(std::max<Index>(tile, 1)), halves_(halves) {}

  /// Starts rows first … first + rows − 1, row i seeing range(i); all_ becomes the union of their ranges, where empty ones start too.
  template <class Range>
  void begin(Index first, Index rows, Index keys, Range const& range) {
    first_ = first;
    rows_ = rows;
    ranges_.clear();
    all_ = {keys, 0};
    for (Index i = 0; i < rows; ++i) {
      KeyRange const s = range(first + i);
      ranges_.push_back(s);
      if (s.first < s.last) all_ = {std::min(all_.first, s.first), std::max(all_.last, s.last)};
    }
    if (all_.first >= all_.last) all_ = {0, 0};
    for (KeyRange& s : ranges_) {
      if (s.first >= s.last) s = {all_.first, all_.first};
    }
    halve();
  }

  /// Whether the block's keys are several tiles.
  bool tiled() const { return all_.first < all_.last && all_.first / tile_ != (all_.last - 1) / tile_; }
  /// Calls body() for every tile of the block's keys, with all_ and range_of() those of the tile.
  template <class Body>
  void each_tile(Body const& body) {
    if (!tiled()) return body();
    KeyRange const whole = all_;
    std::vector<KeyRange> const ranges = ranges_;
    for (Index first = whole.first; first < whole.last; first = all_.last) {
      all_ = {first, std::min((first / tile_ + 1) * tile_, whole.last)};
      std::ranges::transform(ranges, ranges_.begin(), [&](KeyRange s) {
        s = {std::max(s.first, all_.first), std::min(s.last, all_.last)};
        return s.first < s.last ? s : KeyRange{all_.first, all_.first};
      });
      halve();
      body();
    }
    all_ = whole, ranges_ = ranges;
    halve();
  }

  /// Calls body(first, rows, keys) for the rows of a block and the keys of all_ that they see.
  template <class Body>
  void by_rows(Body const& body) const {
    Index const seen = all_.last - all_.first, lower = seen_by_half_ < seen ? half_block : 0;
    if (lower > 0) body(0, lower, seen_by_half_);
    body(lower, rows_ - lower, seen);
  }
  /// The same pairs as body(first key, keys, first row, rows).
  template <class Body>
  void by_keys(Body const& body) const {
    Index const seen = all_.last - all_.first;
    body(0, seen_by_half_, 0, rows_);
    if (seen_by_half_ < seen) body(seen_by_half_, seen - seen_by_half_, half_block, rows_ - half_block);
  }
  /// How many keys of all_ the products have for row i; what is beyond may hold anything.
  Index seen_by(Index i) const { return i < half_block ? seen_by_half_ : all_.last - all_.first; }

  KeyRange range_of(Index i) const { return heed::at(ranges_, i); }

  Index tile_;
  Index first_ = 0, rows_ = 0;
  std::vector<KeyRange> ranges_;
  KeyRange all_{0, 0};

 private:
  static constexpr Index half_block = block_rows / 2;

  /// Where the first half of a block sees so few of the keys that a quarter of its pairs or more can be left out, as on the diagonal of
  /// causal attention, products are made half by half.
  void halve() {
    Index const seen = all_.last - all_.first;
    seen_by_half_ = seen;
    if (!halves_ || rows_ <= half_block || seen > 2 * block_rows) return;
    Index last = all_.first;
    for (Index i = 0; i < half_block; ++i) last = std::max(last, range_of(i).last);
    Index const half = (last - all_.first + 15) / 16 * 16;  // whole batches
    if (half > 0 && half <= seen * 3 / 4) seen_by_half_ = half;
  }

  bool halves_;
  Index seen_by_half_ = 0;
};

}  // namespace heed::kernels
