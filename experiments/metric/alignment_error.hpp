#pragma once

#include <cstdint>
#include <vector>

#include "autograd/tensor.hpp"
#include "experiments/data/dataset.hpp"

namespace heed {

/// What the alignment error rate is computed from: sums over the pairs of a corpus.
struct AlignmentCounts {
  std::int64_t found = 0;           ///< links of the hypothesis: A
  std::int64_t sure = 0;            ///< links of the reference that are sure: S
  std::int64_t found_sure = 0;      ///< links of A that are in S
  std::int64_t found_possible = 0;  ///< links of A that are in P: those of the reference, sure or not

  AlignmentCounts& operator+=(AlignmentCounts const& other);
  bool operator==(AlignmentCounts const&) const = default;
};

/// The links of a pair against what is known of them.
AlignmentCounts alignment_counts(std::vector<Link> const& found, std::vector<Link> const& known);

/// 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|), from 0 (best) to 1 (Och & Ney 2003, section 6). Throws Error if there are no links at all.
double alignment_error_rate(AlignmentCounts const& counts);

/// The hard alignment of attention weights [T, S] of a pair (row t: where it was looked when target t was asked for): of every target that
/// has known links, one link to the place with the largest weight among the first `sources`; the first of equal ones. Throws Error for a
/// known target or sources that the weights do not have, and for weights that are not numbers.
std::vector<Link> hard_links(Tensor const& weights, std::int64_t sources, std::vector<Link> const& known);

/// A picture of so many pixels, seen as fields in rows of so many.
struct PictureFields {
  std::int64_t height, width;
  std::int64_t fields, across;
};

/// Links whose sources are pixels, row by row, as links to the fields that hold them, each once; sure where one of its pixels is.
std::vector<Link> links_to_fields(std::vector<Link> const& links, PictureFields const& picture);

}  // namespace heed
