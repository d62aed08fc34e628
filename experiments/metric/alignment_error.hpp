#pragma once

#include <vector>

#include "autograd/tensor.hpp"
#include "experiments/data/dataset.hpp"

namespace heed {

/// Sums over the pairs of a corpus from which the alignment error rate is computed.
struct AlignmentCounts {
  Index found = 0;           ///< links of the hypothesis: |A|
  Index sure = 0;            ///< sure links of the reference: |S|
  Index found_sure = 0;      ///< links of A that are in S
  Index found_possible = 0;  ///< links of A that are in P, all links of the reference

  AlignmentCounts& operator+=(AlignmentCounts const& other);
  bool operator==(AlignmentCounts const&) const = default;
};

/// Counts of one pair.
AlignmentCounts alignment_counts(std::vector<Link> const& found, std::vector<Link> const& known);

/// 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|), from 0 (best) to 1 (Och & Ney 2003, section 6). Throws Error if there are no links.
double alignment_error_rate(AlignmentCounts const& counts);

/// The hard alignment of attention weights [T, S] of a pair (row t: weights when target t was predicted): each target with known links is
/// linked to the largest weight among the first `sources`, the first of ties. Throws Error for targets or sources outside, and for NaN.
std::vector<Link> hard_links(Tensor const& weights, Index sources, std::vector<Link> const& known);

/// A picture's size in pixels, and its division into rows of fields.
struct PictureFields {
  Index height, width;
  Index fields, across;

  Index rows() const { return fields / across; }
  /// The field that contains a pixel.
  Index at(Index y, Index x) const { return y * rows() / height * across + x * across / width; }
};

/// Replaces sources that are pixels (row by row) by the fields that contain them, each once: a link is sure if one of its pixels' is.
std::vector<Link> links_to_fields(std::vector<Link> const& links, PictureFields const& picture);

}  // namespace heed
