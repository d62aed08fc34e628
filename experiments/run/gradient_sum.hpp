#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "nn/parameters.hpp"

// A step's gradient is the sum of its micro-batches' gradients along a binary tree that depends only on their number: a range of
// micro-batches is split at the largest power of two below its size (for six: ((0 + 1) + (2 + 3)) + (4 + 5)). So any number of processes
// computes the same bits.

namespace heed {

/// Micro-batches first, first + 1, … end − 1.
struct MicroBatches {
  std::int64_t first, end;
  std::int64_t size() const { return end - first; }
  bool holds(MicroBatches const& other) const { return first <= other.first && other.end <= end; }
  bool operator==(MicroBatches const&) const = default;
};

/// The part of `count` micro-batches that process `rank` of `size` computes; `size` divides `count`.
MicroBatches part_of(std::int64_t count, std::int64_t rank, std::int64_t size);

/// The largest subtrees, in order, of the tree over `count` micro-batches that lie within `part`: their sums need no other micro-batches.
std::vector<MicroBatches> subtrees(std::int64_t count, MicroBatches const& part);

/// Sums by the tree. `parts`: consecutive subtrees that make up the tree over `count` micro-batches. add(i, j) adds the sum of part j to
/// that of part i; at the end part 0 has the sum of all.
void sum_by_tree(std::int64_t count, std::vector<MicroBatches> const& parts,
                 std::function<void(std::size_t into, std::size_t from)> const& add);

/// Sums the gradients of one part's micro-batches by the tree, as they are computed one after another. The parameters' grad() holds the sum
/// of the latest subtree; sums of earlier subtrees are held separately, at most log₂ count sets of gradients.
class GradientSum {
 public:
  /// For the micro-batches `part` of a step with `count`.
  GradientSum(Parameters const& parameters, std::int64_t count, MicroBatches const& part);

  /// The index of the parameter that is this leaf; nothing for other leaves.
  std::optional<std::size_t> index_of(Tensor const& leaf) const;
  /// To be called when the backward pass has put the next micro-batch's gradient of parameter i, if any, into its grad(): adds the held
  /// sums that the tree adds to it.
  void join(std::size_t i);
  /// Calls join() for all parameters that were not joined yet, and ends the micro-batch.
  void end_micro_batch();

  /// The subtrees of the part, and the sums of all but the last one, by parameter.
  std::vector<MicroBatches> const& parts() const { return parts_; }
  std::vector<std::vector<Tensor>> const& earlier() const { return held_; }

 private:
  /// A micro-batch's place in the tree.
  struct TreePlace {
    bool second_follows = false;  ///< the next micro-batch's gradient is added to its own in place
    std::size_t joins = 0;        ///< number of held sums that are added to its own
  };
  void find_places(MicroBatches const& range);

  std::vector<std::pair<std::string, Tensor>> const& parameters_;
  std::unordered_map<Node const*, std::size_t> indices_;
  MicroBatches const part_;
  std::vector<MicroBatches> parts_;
  std::vector<TreePlace> places_;  ///< by micro-batch of the part
  std::vector<std::vector<Tensor>> held_;
  std::vector<bool> joined_;
  std::size_t done_ = 0;  ///< micro-batches summed so far
};

/// Most sets of gradients that GradientSum holds besides the parameters' own, if its part is all `count` micro-batches.
std::int64_t most_held(std::int64_t count);

}  // namespace heed
