#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <string>

#include "autograd/index.hpp"

namespace heed {

/// The extents of an array, outermost first: at most eight axes, stored inline to avoid an allocation per Tensor. [] is a scalar's shape.
class Shape {
 public:
  static constexpr std::size_t max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<Index> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  /// Throws Error for more than eight axes or a negative extent.
  explicit Shape(std::span<Index const> extents);

  std::size_t rank() const { return rank_; }
  /// Number of elements: the product of the extents, 1 for a scalar.
  Index elements() const;
  /// The extent of an axis; negative axes count from the end. Throws Error out of range.
  Index operator[](Index axis) const { return extents_[position(axis)]; }
  /// The axis as a position from the front: axis(-1) is rank − 1. Throws Error out of range.
  std::size_t position(Index axis) const;
  void set(Index axis, Index extent) { extents_[position(axis)] = extent; }
  void append(Index extent);

  Index const* begin() const { return extents_.data(); }
  Index const* end() const { return extents_.data() + rank_; }
  operator std::span<Index const>() const { return {extents_.data(), rank_}; }
  friend bool operator==(Shape const& a, Shape const& b) = default;

 private:
  std::array<Index, max_rank> extents_{};
  std::size_t rank_ = 0;
};

/// "[12, 64, 128]".
std::string to_string(Shape const& shape);

/// The shape to which both broadcast (NumPy's rule: aligned at the end, extents equal or 1). Throws Error naming `operation`.
Shape broadcast(Shape const& a, Shape const& b, char const* operation);

/// An axis of a shape counted from the front. Throws Error naming the operation: "slice: axis 3 is out of range for the shape [2, 4]".
Index axis_of(char const* operation, Shape const& shape, Index axis);

/// A shape split at one axis: [outer, extent, inner].
struct AxisSplit {
  Index outer = 1, extent = 1, inner = 1;

  AxisSplit(Shape const& shape, Index axis);
};

}  // namespace heed
