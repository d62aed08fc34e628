#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/ops/recurrence.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/layers.hpp"

namespace heed {

/// A recurrent cell, declared beside its definition: `cell: lstm`.
struct CellKind {
  std::string name, formula, paper;
  Index gates;   ///< number of blocks of the cell's width in W x and U h
  Index states;  ///< number of states, each of the cell's width; the first is the output
  /// The states after a step, from a = W x + b_W and b = U h + b_U [B, gates · w] and the states before it.
  std::function<States(Tensor const& a, Tensor const& b, States const& before)> step;
  std::optional<CellForm> form = {};  ///< the fused scan's form; nothing: computed step by step
};
/// Throws Error for an unknown cell.
CellKind const& cell_kind(std::string const& name);

/// These rows of each state, in this order.
States chosen_rows(States const& states, std::span<Index const> rows);

/// The result of a scan over time.
struct Scanned {
  Tensor outputs;  ///< h after each step, zeros beyond a sequence's length: [T, B, w]
  States last;     ///< after the last step of each sequence
};

/// A recurrent cell: one layer, one direction. Time is the first axis of its inputs.
class RecurrentCell {
 public:
  /// `normed`: layer norm of W x and of U h instead of biases (Ba et al. 2016, section 3.1); such a cell is computed step by step.
  RecurrentCell(Scope const& scope, std::string const& kind, Index in, Index width, bool normed = false);

  Index width() const { return recurrent_.weight.size(1); }
  /// Zero states.
  States begin(Index rows) const;

  /// The states after reading x [B, in].
  States step(Tensor const& x, States const& before) const { return step_of(input_(x), before); }
  /// The same from a = W x + b_W, for callers that computed it in parts.
  States step_of(Tensor const& a, States const& before) const;
  /// W and b_W.
  Linear const& input() const { return input_; }

  /// Over x [T, B, in], from `start` (empty: zeros). Uses the fused scan if the cell has one, else single steps.
  Scanned scan(Tensor const& x, ScanOrder const& order, States const& start, Pass const& pass) const;

  /// Floating-point operations per step and sequence.
  double flops() const;

 private:
  bool fused() const;

  CellKind const& kind_;
  std::string part_;
  Linear input_, recurrent_;
  std::optional<Norm> input_norm_, recurrent_norm_;
};

/// Settings of a stack of cells.
struct RecurrentShape {
  std::string cell = "lstm";
  Index in, width, layers = 1;
  bool bidirectional = false;
  bool from_end = false;  ///< the forward direction starts at a sequence's last step instead
  double dropout = 0;     ///< between layers
  bool normed = false;    ///< as in RecurrentCell
};

/// x's row t: [T, B, width] → [B, width].
Tensor time_step(Tensor const& x, Index t);

/// The name of a layer's cells: the scope itself if there is only one layer, else its number.
Scope layer_scope(Scope const& scope, Index layer, Index layers);

/// Layers of cells over time: forward, or bidirectional (Schuster & Paliwal 1997), where a layer reads both outputs of the one below.
class Recurrent {
 public:
  Recurrent(Scope const& scope, RecurrentShape const& shape);

  struct RecurrentResult {
    Tensor outputs;                ///< of the last layer: [T, B, w], or [T, B, 2w] forward and backward
    std::vector<States> forward;   ///< after the last step of each sequence, by layer
    std::vector<States> backward;  ///< after its first step, by layer; empty if not bidirectional
  };
  /// Over x [T, B, in], whose sequence b has lengths[b] steps (undefined: all). `start`: by layer, of the forward direction (empty: zeros).
  RecurrentResult operator()(Tensor x, Tensor const& lengths, std::vector<States> const& start, Pass const& pass) const;

  /// Floating-point operations per step and sequence.
  double flops() const;
  /// The width of its outputs.
  Index width() const { return shape_.width * (shape_.bidirectional ? 2 : 1); }

 private:
  RecurrentShape shape_;
  std::string part_;
  std::vector<RecurrentCell> forward_, backward_;
};

}  // namespace heed
