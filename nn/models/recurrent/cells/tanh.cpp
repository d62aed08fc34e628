// h' = tanh(W x + U h)

#include "nn/models/recurrent/recurrent.hpp"

namespace heed {

namespace {

Declared<CellKind> const declared{fused_cell("tanh", "tanh(W x + U h)", "Elman 1990", CellForm::tanh)};

}  // namespace

}  // namespace heed
