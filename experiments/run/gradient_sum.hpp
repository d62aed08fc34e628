#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "nn/parameters.hpp"

// A step's gradient is the sum of its micro-batches' by one binary tree, which depends on their number alone: a range of them is split at
// the largest power of two below its size (of six: ((0 + 1) + (2 + 3)) + (4 + 5)). So the same bits come of any number of processes.

namespace heed {

/// Micro-batches first, first + 1, … end − 1.
struct MicroBatches {
  std::int64_t first, end;
  std::int64_t size() const { return end - first; }
  bool holds(MicroBatches const& other) const { return first <= other.first && other.end <= end; }
  bool operator==(MicroBatches const&) const = default;
};

/// The part of `count` micro-batches that process `rank` of `size` makes; size divides count.
MicroBatches part_of(std::int64_t count, std::int64_t rank, std::int64_t size);

/// The largest subtrees of the tree over `count` micro-batches that lie within `part`, in order: what can be summed of it without the rest.
std::vector<MicroBatches> subtrees(std::int64_t count, MicroBatches const& part);

/// Sums by the tree what is known of `parts`, consecutive subtrees that make up the tree over `count` micro-batches: add(i, j) adds the
/// sum that stands at place j to that at place i. At the end place 0 holds all.
void sum_by_tree(std::int64_t count, std::vector<MicroBatches> const& parts,
                 std::function<void(std::size_t into, std::size_t from)> const& add);

/// The gradients of the micro-batches of one part, summed by the tree while they are made one after the other. The parameters' grad()
/// holds the last subtree of the part so far; sums of earlier ones are held aside, log₂ count sets of gradients at most.
class GradientSum {
 public:
  GradientSum(Parameters const& parameters, std::int64_t count, MicroBatches const& part);

  /// The parameter that a leaf is; nothing for another leaf.
  std::optional<std::size_t> index_of(Tensor const& leaf) const;
  /// A walk has put the next micro-batch's gradient of parameter i into its grad(), or has none for it: adds to it what the tree adds.
  void join(std::size_t i);
  /// The same of all parameters that were not joined yet; ends the micro-batch.
  void end_micro_batch();

  /// The subtrees of the part, and, by parameter, the sums of all but the last one.
  std::vector<MicroBatches> const& parts() const { return parts_; }
  std::vector<std::vector<Tensor>> const& earlier() const { return held_; }

 private:
  /// What a micro-batch is in the tree.
  struct TreePlace {
    bool second_follows = false;  ///< the next one's gradient is added to its own in place
    std::size_t joins = 0;        ///< how many sums that are held are added to its own
  };
  void find_places(MicroBatches const& range);

  std::vector<std::pair<std::string, Tensor>> const& parameters_;
  std::unordered_map<Node const*, std::size_t> indices_;
  MicroBatches const part_;
  std::vector<MicroBatches> parts_;
  std::vector<TreePlace> places_;  ///< of each micro-batch of the part
  std::vector<std::vector<Tensor>> held_;
  std::vector<bool> joined_;
  std::size_t done_ = 0;  ///< micro-batches
};

/// How many sets of gradients GradientSum holds beside the parameters' own, at most, for all of `count` micro-batches.
std::int64_t most_held(std::int64_t count);

}  // namespace heed
