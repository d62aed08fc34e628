#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "autograd/graph_memory.hpp"

namespace heed {

/// A vertex of the graph: a leaf, or the operation that made a tensor. Edges point to what it was made of (never back: no cycles).
class Node {
 public:
  explicit Node(char const* operation);
  /// Iterative: a chain of any length is freed without recursion.
  ~Node();
  Node(Node const&) = delete;
  Node& operator=(Node const&) = delete;

  bool is_leaf() const { return !rule_given; }
  bool recomputes(std::size_t input) const { return input < recomputed.size() && recomputed[input]; }
  /// Forgets rule, inputs and output: what backward() does behind it.
  void consume();

  std::uint64_t sequence;      ///< order of creation: a node is newer than everything it was made of
  char const* operation;       ///< a literal: "matmul"
  std::string const* part;     ///< the model's part that it was made in, or null (interned, never freed)
  std::vector<Tensor> inputs;  ///< as given, arrays dropped where the rule does not need them
  Tensor output;               ///< the value without a node, array dropped likewise
  Rule rule;
  Recompute recompute;           ///< where the output is recomputed rather than kept by what comes of it
  std::vector<bool> recomputed;  ///< of each input: its array is not kept here, but recomputed by its node; empty: of none
  std::int64_t depth = 1;        ///< operations one after the other that it stands for: a scan's time steps
  bool adds = false;             ///< the rule adds to BackwardContext::into
  bool rule_given = false;
  bool consumed = false;
  bool frozen = false;  ///< of a leaf: a constant for the time being
  Tensor gradient;      ///< leaves: what backward() has accumulated
  std::vector<std::function<Tensor(Tensor const&)>> hooks;
};

/// "tanh in blocks.0.mlp".
std::string describe(Node const& node);

/// Throws Error, naming the operation and the input or its result, if an array that the node keeps was written to since it was made: its
/// rule would give wrong gradients.
void require_unwritten(Node const& node);

/// The array of a tensor that nobody kept, after those that it is made of: each is recomputed once, then held by its node until that is
/// consumed. Iterative, like the walk.
Tensor recomputed(Tensor const& hollow);
/// Drops the arrays that were recomputed for the node's inputs, where the graph stays after the walk; what these were made of stays until
/// its own node is walked, so that a chain is recomputed once.
void forget_recomputed(Node const& user);

/// x as the output of an operation of its own: where a walk inside a rule ends.
Tensor alias(Tensor const& x);

/// grad() for rules that walk a graph of their own: the walk ends at `inputs`, even where one of them was made from another, and leaves
/// their hooks to the walk that it is a part of. Costs no more than what lies between, however much lies behind.
std::vector<Tensor> grad_within(std::vector<Tensor> outputs, std::vector<Tensor> const& inputs, std::vector<Tensor> seeds,
                                bool create_graph);

/// Throws NonFinite if anomaly mode is on and `value` holds a NaN or an infinity. `what`: "tanh", "the gradient of tanh".
void check_finite(Tensor const& value, std::string const& what);

}  // namespace heed
