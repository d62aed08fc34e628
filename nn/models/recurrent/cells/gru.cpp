// r, z = σ(W x + U h), n = tanh(W_n x + r ∘ U_n h), h' = (1 − z) ∘ n + z ∘ h: gated, without a state of its own behind the output

#include "nn/models/recurrent/recurrent.hpp"

namespace heed {

namespace {

Declared<CellKind> const declared{fused_cell("gru", "(1 − z) n + z h, n = tanh(W x + r U h)", "Cho et al. 2014", CellForm::gru)};

}  // namespace

}  // namespace heed
