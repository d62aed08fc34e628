// i, f, o = σ(W x + U h), g = tanh(W_g x + U_g h), c' = f ∘ c + i ∘ g, h' = o ∘ tanh c'

#include "nn/models/recurrent/recurrent.hpp"

namespace heed {

namespace {

Declared<CellKind> const declared{fused_cell("lstm", "o tanh(f c + i g)", "Hochreiter & Schmidhuber 1997", CellForm::lstm)};

}  // namespace

}  // namespace heed
