#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/ops/recurrence.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/layers.hpp"

namespace heed {

/// A recurrent cell, declared beside its definition (nn/cells): `cell: lstm`.
struct CellKind {
  std::string name, formula, paper;
  std::int64_t gates;   ///< blocks of its width that W x and U h have
  std::int64_t states;  ///< of its width, that it carries from step to step; the first is its output
  /// The states after a step, of a = W x + b_W and b = U h + b_U [B, gates · w] and the states before it.
  std::function<States(Tensor const& a, Tensor const& b, States const& before)> step;
  std::optional<CellForm> form = {};  ///< whose scan has kernels; nothing: it goes step by step
};
/// A cell of the engine's.
CellKind fused_cell(std::string name, std::string formula, std::string paper, CellForm form);
/// Throws Error for a cell that is not declared.
CellKind const& cell_kind(std::string const& name);

/// The rows of each state with these numbers, in this order.
States chosen_rows(States const& states, std::span<std::int64_t const> rows);

/// What a scan over time gives.
struct Scanned {
  Tensor outputs;  ///< h after each step, zeros behind a row's length: [T, B, w]
  States last;     ///< after the last step of each row
};

/// A recurrent cell of one layer and one direction. Time is the first axis of what it scans.
class RecurrentCell {
 public:
  /// `normed`: layer norm of W x and of U h, each, instead of biases (Ba et al. 2016, section 3.1); such a cell goes step by step.
  RecurrentCell(Scope const& scope, std::string const& kind, std::int64_t in, std::int64_t width, bool normed = false);

  std::int64_t width() const { return recurrent_.weight.size(1); }
  /// Zeros.
  States begin(std::int64_t rows) const;

  /// The states after reading x [B, in].
  States step(Tensor const& x, States const& before) const { return step_of(input_(x), before); }
  /// The same of what W makes of x, with its bias: for who has computed it of several parts.
  States step_of(Tensor const& a, States const& before) const;
  /// W, and its columns for consecutive parts of x.
  Linear const& input() const { return input_; }
  std::vector<Tensor> input_columns(std::vector<std::int64_t> const& widths) const { return split(input_.weight, widths, 1); }

  /// Over x [T, B, in], from `start` (empty: zeros). By the fused scan where the cell has one, else step by step.
  Scanned scan(Tensor const& x, ScanOrder const& order, States const& start, Pass const& pass) const;

  /// Floating-point operations of a step of one row.
  double flops() const;

 private:
  bool fused() const;

  CellKind const& kind_;
  std::string part_;
  Linear input_, recurrent_;
  std::optional<Norm> input_norm_, recurrent_norm_;
};

/// How a stack of cells is made.
struct RecurrentShape {
  std::string cell = "lstm";
  std::int64_t in, width, layers = 1;
  bool bidirectional = false;
  bool from_end = false;  ///< what goes forward begins with a row's last step instead
  double dropout = 0;     ///< between layers
  bool normed = false;    ///< as RecurrentCell's
};

/// Where the cells of a layer are among a model's names: at the scope itself if there is but one layer, else at its number.
Scope layer_scope(Scope const& scope, std::int64_t layer, std::int64_t layers);

/// Layers of cells over time: forward, or both ways (Schuster & Paliwal 1997), where a layer reads both outputs of the one below.
class Recurrent {
 public:
  Recurrent(Scope const& scope, RecurrentShape const& shape);

  struct RecurrentResult {
    Tensor outputs;                ///< of the last layer: [T, B, w], or [T, B, 2w] forward and backward
    std::vector<States> forward;   ///< after the last step of each row, by layer
    std::vector<States> backward;  ///< after its first step, by layer; empty where nothing goes backward
  };
  /// Over x [T, B, in], whose row b has lengths[b] steps (undefined: all); `start`: by layer, of what goes forward (empty: zeros).
  RecurrentResult operator()(Tensor x, Tensor const& lengths, std::vector<States> const& start, Pass const& pass) const;

  /// Floating-point operations of a step of one row.
  double flops() const;
  /// Of its outputs.
  std::int64_t width() const { return shape_.width * (shape_.bidirectional ? 2 : 1); }

 private:
  RecurrentShape shape_;
  std::string part_;
  std::vector<RecurrentCell> forward_, backward_;
};

}  // namespace heed
