#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "autograd/graph_memory.hpp"

namespace heed {

/// A node of the graph: a leaf, or the operation that made a tensor. Edges point from an output to its inputs (no cycles).
class Node {
 public:
  explicit Node(char const* operation);
  /// Iterative: a chain of any length is freed without recursion.
  ~Node();
  Node(Node const&) = delete;
  Node& operator=(Node const&) = delete;

  bool is_leaf() const { return !rule && !consumed; }
  bool recomputes(std::size_t input) const { return input < recomputed.size() && recomputed[input]; }
  /// Drops rule, inputs and output, as backward() does with visited nodes.
  void consume();

  std::uint64_t sequence;      ///< order of creation: a node is newer than its inputs
  char const* operation;       ///< a literal: "matmul"
  std::string const* part;     ///< the model part that created it, or null (interned, never freed)
  std::vector<Tensor> inputs;  ///< as given, without arrays that the rule does not need
  Tensor output;               ///< the value without a node, likewise
  Rule rule;
  Recompute recompute;           ///< set if the output is recomputed in the backward pass instead of kept
  std::vector<bool> recomputed;  ///< per input: its array is recomputed by its node, not kept here; empty: none
  std::vector<bool> absent;      ///< per input: it was not there; empty: all were
  Index depth = 1;               ///< number of sequential operations that it stands for: a scan's time steps
  bool adds = false;             ///< the rule adds to BackwardContext::into
  bool consumed = false;
  bool frozen = false;  ///< of a leaf: treated as a constant for now
  Tensor gradient;      ///< of a leaf: accumulated by backward()
  std::vector<std::function<Tensor(Tensor const&)>> hooks;
};

/// A graph's nodes behind these outputs, the oldest first: inputs before operations that use them. Ends at those in `ends`, if given.
std::map<std::uint64_t, Node const*> nodes_behind(std::vector<Tensor> const& outputs,
                                                  std::unordered_map<Node const*, Tensor> const* ends = nullptr);

/// Throws Error naming the function unless both have one shape and dtype: "set_grad: the gradient is float64 [2], the tensor float32 [2]".
void require_alike(char const* function, char const* what, Tensor const& given, char const* of, Tensor const& like);

/// "tanh in blocks.0.mlp".
std::string describe(Node const& node);

/// Throws Error, naming the operation and its input or result, if an array that the node keeps and its rule needs was written to since.
void require_unwritten(Node const& node);

/// The array of a tensor that was not kept, recomputed after those it depends on; each is recomputed once and kept by its node until that
/// is consumed. Iterative, like the backward pass.
Tensor recomputed(Tensor const& hollow);
/// Drops the arrays that were recomputed for the node's inputs, where the graph is kept after the pass. What they were computed from is
/// kept until its own node is visited, so that a chain is recomputed once.
void forget_recomputed(Node const& user);

/// x as the output of a new operation: where a pass inside a rule ends.
Tensor alias(Tensor const& x);

/// grad() for rules that differentiate a graph of their own: the pass ends at `inputs`, even if one was made from another, and leaves their
/// hooks to the enclosing pass. Its cost depends only on the graph between outputs and inputs.
std::vector<Tensor> grad_within(std::vector<Tensor> outputs, std::vector<Tensor> const& inputs, std::vector<Tensor> seeds,
                                bool create_graph);

/// Throws NonFinite if anomaly mode is on and `value` holds a NaN or an infinity. `what`: "tanh", "the gradient of tanh".
void check_finite(Tensor const& value, std::string const& what);

}  // namespace heed
