#include "autograd/attention/inputs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {

namespace {

/// The extent of an axis; 1 if unknown.
Index extent_of(AttentionAxis axis, AttentionExtents const& e) {
  auto const& [batch, queries, keys, heads, groups, width, value_width] = e;
  // In the order of AttentionAxis.
  Index const known[]{batch, queries, keys, heads, heads * width, groups * width, groups * value_width, width, queries + keys - 1};
  return axis <= AttentionAxis::distances ? heed::at(known, axis) : 1;
}

}  // namespace

Shape shape_of(AttentionAxes const& axes, AttentionExtents const& extents, Index elements) {
  Shape shape;
  for (AttentionAxis const axis : axes) shape.append(extent_of(axis, extents));
  Index const known = shape.elements(), rest = elements / std::max<Index>(1, known);
  Index at = 0;
  for (AttentionAxis const axis : axes) {
    if (axis == AttentionAxis::any) shape.set(at, rest);
    if (axis == AttentionAxis::one_or_two) shape.set(at, elements == 2 * known ? 2 : 1);
    ++at;
  }
  return shape;
}

AttentionExtents extents_of(AttentionInputs const& in, Index heads, Index groups) {
  Tensor const &query = in.query, &key = in.key, &value = in.value;
  bool fits = heads > 0 && groups > 0 && heads % groups == 0 && query.rank() == 3 && key.rank() == 3 && value.rank() == 3 &&
              query.size(2) % heads == 0 && value.size(2) % groups == 0;
  AttentionExtents e{};
  if (fits) {
    e = {query.size(0), query.size(1), key.size(1), heads, groups, query.size(2) / heads, value.size(2) / groups};
    fits = key.shape() == Shape{e.batch, e.keys, groups * e.width} && value.shape() == Shape{e.batch, e.keys, value.size(2)};
  }
  if (fits) return e;
  throw Error(fmt::format("attention: query {}, key {}, value {} with {} heads{}: wants [B, n, H·d], [B, m, G·d], [B, m, G·d_v]",
                          to_string(query.shape()), to_string(key.shape()), to_string(value.shape()), heads,
                          groups == heads ? "" : fmt::format(" in {} groups", groups)));
}

AxisRange range_of(AttentionAxis axis, Index extent, AttentionPart const& part, AttentionExtents const& whole) {
  switch (axis) {
    case AttentionAxis::sequences:
      return {part.first_sequence, part.sequences};
    case AttentionAxis::queries:
      return {part.first_query, part.queries};
    case AttentionAxis::keys:
      return {part.first_key, part.keys};
    case AttentionAxis::heads:
    case AttentionAxis::head_widths: {
      Index const each = extent / whole.heads;
      return {part.first_head * each, part.heads * each};
    }
    case AttentionAxis::group_widths:
    case AttentionAxis::group_values: {
      Index const each = extent / whole.groups, of_group = whole.heads / whole.groups;
      Index const first = part.first_head / of_group, last = (part.first_head + part.heads - 1) / of_group;
      return {first * each, (last - first + 1) * each};
    }
    case AttentionAxis::distances:  // the element j − i + n − 1, i and n being the part's
      return {whole.queries - part.first_query - part.queries + part.first_key, part.queries + part.keys - 1};
    default:
      return {0, extent};
  }
}

}  // namespace heed
