#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "autograd/tensor.hpp"

/// The arrays that attention reads. One table lists how each is checked, split into parts, and where its gradient goes.
namespace heed {

/// One X per array: the array, or a pointer to a head's part of it or of its gradient.
template <class X>
struct AttentionArrays {
  X query = {};                   ///< [B, n, H·d]: head h owns the elements h·d … (h+1)·d − 1
  X key = {}, value = {};         ///< [B, m, G·d] and [B, m, G·d_v]: head h reads group ⌊h G/H⌋
  X weight = {};                  ///< w of f: [H, d]
  X parameter = {};               ///< p of g: [H, 1] or [H, 2]
  X of_query = {}, of_key = {};   ///< α and β: [B, H, n] and [B, H, m]
  X relative = {};                ///< r: [H, n + m − 1], the element j − i + n − 1, i counted from the first query
  X near = {};                    ///< [B, n, H, 2c + 1]: the element clamp(j − i, −c, c) + c, i the query's position
  X of_row = {}, of_column = {};  ///< u and t: [B, H, n] and [B, H, m]
  X centres = {};                 ///< [B, H, n, 1]
  X align = {};                   ///< the align's parameter: [H]
  X align_of_row = {};            ///< or one a row: [B, H, n]

  static constexpr std::size_t count = 14;
};
/// Pointers to all of them, in the table's order.
template <class Arrays>
auto pointers_to(Arrays& a) {
  return std::array{&a.query,    &a.key,  &a.value,  &a.weight,    &a.parameter, &a.of_query, &a.of_key,
                    &a.relative, &a.near, &a.of_row, &a.of_column, &a.centres,   &a.align,    &a.align_of_row};
}

/// What fused attention reads; all but the first three may be undefined.
using AttentionInputs = AttentionArrays<Tensor>;

/// Extents of a call.
struct AttentionExtents {
  Index batch;               ///< B sequences
  Index queries, keys;       ///< n and m
  Index heads, groups;       ///< H heads in G groups that share keys and values
  Index width, value_width;  ///< d and d_v
};

/// What an axis counts, and its extent.
enum class AttentionAxis {
  sequences,     ///< B
  queries,       ///< n
  keys,          ///< m
  heads,         ///< H
  head_widths,   ///< H·d
  group_widths,  ///< G·d
  group_values,  ///< G·d_v
  width,         ///< d
  distances,     ///< n + m − 1
  one,           ///< 1
  one_or_two,    ///< 1 or 2
  any,           ///< what the elements leave
};

/// The axes of an array, outermost first.
using AttentionAxes = std::vector<AttentionAxis>;

struct AttentionArray {
  char const* name;
  AttentionAxes axes;
  /// Whether the kernel writes every element of the gradient; otherwise it adds to zeros.
  bool written = false;

  /// Whether all sequences share the array: its gradient is summed over sequences.
  bool shared() const { return axes.front() != AttentionAxis::sequences; }
};
inline auto const attention_arrays = [] {
  using enum AttentionAxis;
  return std::array<AttentionArray, AttentionInputs::count>{{
      {"queries", {sequences, queries, head_widths}, true},
      {"keys", {sequences, keys, group_widths}, true},
      {"values", {sequences, keys, group_values}, true},
      {"the score's weights", {heads, width}},
      {"the score's parameters", {heads, one_or_two}},
      {"numbers of queries", {sequences, heads, queries}},
      {"numbers of keys", {sequences, heads, keys}},
      {"biases by distance", {heads, distances}},
      {"biases by near distance", {sequences, queries, heads, any}},
      {"biases of rows", {sequences, heads, queries}},
      {"biases of columns", {sequences, heads, keys}},
      {"centres", {sequences, heads, queries, one}},
      {"the align's parameters", {heads}},
      {"the align's parameters by row", {sequences, heads, queries}},
  }};
}();

/// Calls body(table row, the X of each of `all`) for every array.
template <class Body, class... Arrays>
void each_array(Body const& body, Arrays&... all) {
  for (std::size_t i = 0; i < attention_arrays.size(); ++i) body(attention_arrays[i], *pointers_to(all)[i]...);
}

/// The extents of a call with these heads and groups. Throws Error for queries, keys or values of the wrong shape.
AttentionExtents extents_of(AttentionInputs const& in, Index heads, Index groups);
/// The shape of an array with these axes; `elements`: the array's size, from which an unknown extent follows.
Shape shape_of(AttentionAxes const& axes, AttentionExtents const& extents, Index elements);

/// A part of a call: some sequences, heads, queries and keys.
struct AttentionPart {
  Index first_sequence, sequences, first_head, heads, first_query, queries, first_key, keys;
};
/// Elements first … first + count − 1 of an axis.
struct AxisRange {
  Index first, count;
};
/// A part's range along an axis of this extent. The elements of neighbouring heads or groups are adjacent.
AxisRange range_of(AttentionAxis axis, Index extent, AttentionPart const& part, AttentionExtents const& whole);

}  // namespace heed
