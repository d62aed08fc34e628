#pragma once

#include <functional>
#include <vector>

#include "autograd/tensor.hpp"

/// Recurrent cells and their scan over time (recurrence.cpp). Time is the first axis, so that the rows of a step lie together.
namespace heed {

/// The states of a cell, [B, w] each; the first is its output h, a second an LSTM's c.
using States = std::vector<Tensor>;

/// Cells whose scan has kernels. With a = W x + b_W, what a step reads, and b = U h + b_U, each in blocks of w, one a gate:
///
///   tanh  h' = tanh(a + b)                                                              (Elman 1990)
///   gru   r, z = σ(a + b);  n = tanh(a_n + r b_n);  h' = (1 − z) n + z h                (Cho et al. 2014; PyTorch's form)
///   lstm  i, f, o = σ(a + b), g = tanh(a + b) in the order i f g o;  c' = f c + i g;  h' = o tanh c'    (Hochreiter & Schmidhuber 1997)
enum class CellForm { tanh, gru, lstm };

std::int64_t gates_of(CellForm cell);
std::int64_t states_of(CellForm cell);
/// One step of a cell as a composition of simple operations: a and b [B, gates · w].
States cell_step(CellForm cell, Tensor const& a, Tensor const& b, States const& before);

/// Which way a scan goes, and how far: row b has lengths[b] steps (int64 [B]; undefined: all), which are the first ones; a row that is not
/// at work keeps its states.
struct ScanOrder {
  Tensor lengths = {};
  bool backward = false;  ///< from the last step to the first
};

/// a [T, B, …] is scanned by `step`, which makes the states after a step of its rows a_t [B, …] and the states before it. Gives
/// [T + number of states, B, w]: the output h after each step, zeros where a row is not at work, and behind them the last states.
Tensor scan_by_steps(ScanOrder const& order, Tensor const& a, States const& start,
                     std::function<States(Tensor const& a, States const& before)> const& step);

/// The same by a cell with kernels: a [T, B, gates · w], weight U [gates · w, w], bias b_U [gates · w] or undefined, start [B, w] each.
/// Forward, a step is one product and one pass over the gates; for the gradient likewise, and the weight's is one product for all steps.
Tensor scan(CellForm cell, ScanOrder const& order, Tensor const& a, Tensor const& weight, Tensor const& bias, States const& start);
/// As a composition of simple operations.
Tensor scan_reference(CellForm cell, ScanOrder const& order, Tensor const& a, Tensor const& weight, Tensor const& bias,
                      States const& start);

/// While it lives, cells on this thread go step by step, by simple operations, where they would take the fused scan.
class ReferenceCells {
 public:
  ReferenceCells();
  ~ReferenceCells();
  ReferenceCells(ReferenceCells const&) = delete;
  ReferenceCells& operator=(ReferenceCells const&) = delete;

  /// Whether there is one on this thread.
  static bool alive();

 private:
  bool before_;
};

}  // namespace heed
