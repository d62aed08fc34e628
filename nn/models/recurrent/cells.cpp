// The cells whose steps the engine makes as one operation.

#include "nn/models/recurrent/recurrent.hpp"

namespace heed {

namespace {

// r, z = σ(W x + U h), n = tanh(W_n x + r ∘ U_n h), h' = (1 − z) ∘ n + z ∘ h: gated, without a state of its own behind the output
Declared<CellKind> const gru_cell{fused_cell("gru", "(1 − z) n + z h, n = tanh(W x + r U h)", "Cho et al. 2014", CellForm::gru)};

// i, f, o = σ(W x + U h), g = tanh(W_g x + U_g h), c' = f ∘ c + i ∘ g, h' = o ∘ tanh c'
Declared<CellKind> const lstm_cell{fused_cell("lstm", "o tanh(f c + i g)", "Hochreiter & Schmidhuber 1997", CellForm::lstm)};

// h' = tanh(W x + U h)
Declared<CellKind> const tanh_cell{fused_cell("tanh", "tanh(W x + U h)", "Elman 1990", CellForm::tanh)};

}  // namespace

}  // namespace heed
