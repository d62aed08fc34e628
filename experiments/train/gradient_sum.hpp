#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "nn/model.hpp"
#include "nn/parameters.hpp"

// A step's gradient is the sum of its micro-batches' gradients along a binary tree that depends only on their number: neighbours are added
// in pairs, then pairs of pairs, and so on (for six: ((0 + 1) + (2 + 3)) + (4 + 5)). So any number of processes computes the same bits.

namespace heed {

/// Micro-batches first, first + 1, … end − 1.
struct MicroBatches {
  Index first, end;
};

/// The part of `count` micro-batches that process `rank` of `size` computes; `size` divides `count`.
MicroBatches part_of(Index count, Index rank, Index size);

/// The first micro-batch of each of the largest subtrees, in order, of the tree over `count` micro-batches that lie within `part`: their
/// sums need no other micro-batches.
std::vector<Index> subtrees(Index count, MicroBatches const& part);

/// Sums by the tree. `subtrees`: those that together make up the tree over `count` micro-batches, each by its first one. add(i, j) adds the
/// sum of subtree j to that of subtree i; at the end subtree 0 has the sum of all.
void sum_by_tree(Index count, std::vector<Index> const& subtrees, std::function<void(std::size_t into, std::size_t from)> const& add);

/// Sums the gradients of one part's micro-batches by the tree, as they are computed one after another. The parameters' grad() holds the sum
/// of the latest subtree; sums of earlier subtrees are held separately, at most log₂ count sets of gradients.
class GradientSum {
 public:
  /// For the micro-batches `part` of a step with `count`.
  GradientSum(Parameters const& parameters, Index count, MicroBatches const& part)
      : parameters_(parameters.all()), count_(count), part_(part), made_(part.first) {}

  /// To be called when backward() has added the next micro-batch's gradients to the parameters' grad(), which it may clear.
  void end_micro_batch();
  /// After the last micro-batch: the sums of the part's subtrees, each by parameter; undefined: no gradient.
  std::vector<std::vector<Tensor>> sums() const;

  std::vector<std::pair<std::string, Tensor>> const& parameters() const { return parameters_; }
  Index count() const { return count_; }

 private:
  std::vector<std::pair<std::string, Tensor>> const& parameters_;
  Index const count_;
  MicroBatches const part_;
  Index made_;  ///< the micro-batch after the last one that was summed
  std::vector<std::vector<Tensor>> held_;
};

/// Results of a step's micro-batches, besides gradients.
struct StepResults {
  std::vector<double> losses;  ///< by micro-batch
  double tokens = 0;           ///< of "inputs", without padding
};

/// The counts of the micro-batches of all ranks. They are integers, so their sums are exact in any order.
Counts counts_of_all(Counts const& own);

/// The largest of each of these numbers over all ranks.
std::vector<double> largest_of_all(std::vector<double> own);

/// Replaces the parameters' gradients, which are those of this rank's micro-batches, by the sums over all ranks along the tree, and the
/// results by those of all ranks. A parameter without a gradient on any rank has none.
void sum_over_ranks(GradientSum const& own, StepResults& results);

}  // namespace heed
