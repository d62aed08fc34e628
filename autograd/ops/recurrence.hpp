#pragma once

#include <functional>
#include <vector>

#include "autograd/tensor.hpp"

/// Recurrent cells and their scan over time (recurrence.cpp). Time is the first axis, so that the rows of a step are contiguous.
namespace heed {

/// The states of a cell, [B, w] each; the first is its output h, the second an LSTM's c.
using States = std::vector<Tensor>;

/// Cells with a fused scan. With a = W x + b_W, the input's part, and b = U h + b_U, the state's part, each in blocks of width w, one per
/// gate:
///
///   tanh  h' = tanh(a + b)                                                              (Elman 1990)
///   gru   r, z = σ(a + b);  n = tanh(a_n + r b_n);  h' = (1 − z) n + z h                (Cho et al. 2014; PyTorch's form)
///   lstm  i, f, o = σ(a + b), g = tanh(a + b) in the order i f g o;  c' = f c + i g;  h' = o tanh c'    (Hochreiter & Schmidhuber 1997)
enum class CellForm { tanh, gru, lstm };

Index gates_of(CellForm cell);
Index states_of(CellForm cell);
/// One step of a cell as a composition of simple operations: a and b [B, gates · w].
States cell_step(CellForm cell, Tensor const& a, Tensor const& b, States const& before);

/// Direction and lengths of a scan: row b has lengths[b] steps (int64 [B]; undefined: all); beyond them a row keeps its states.
struct ScanOrder {
  Tensor lengths = {};
  bool backward = false;  ///< from the last step to the first
};

/// Scans a [T, B, …] by `step`, which computes the next states from a_t [B, …] and the states before. Gives [T + number of states, B, w]:
/// the output h after each step, zeros beyond a row's length, followed by the last states.
Tensor scan_by_steps(ScanOrder const& order, Tensor const& a, States const& start,
                     std::function<States(Tensor const& a, States const& before)> const& step);

/// The fused scan of a cell: a [T, B, gates · w], weight U [gates · w, w], bias b_U [gates · w] or undefined, start [B, w] each. A step is
/// one product and one pass over the gates, forward and backward; the weight's gradient is one product for all steps.
Tensor scan(CellForm cell, ScanOrder const& order, Tensor const& a, Tensor const& weight, Tensor const& bias, States const& start);
/// The same, composed of simple operations.
Tensor scan_reference(CellForm cell, ScanOrder const& order, Tensor const& a, Tensor const& weight, Tensor const& bias,
                      States const& start);

/// While it lives, cells on this thread are computed step by step from simple operations instead of by the fused scan.
struct ReferenceCells : Temporarily<bool> {
  ReferenceCells();
  /// Whether one is alive on this thread.
  static bool alive();
};

}  // namespace heed
