// Nothing: order is known only through the causal mask.

#include "nn/position.hpp"

namespace heed {

namespace {

Declared<PositionKind> const none_position{{"none", "nothing added: order only through the causal mask", "Haviv et al. 2022", "defined",
                                            makes<Position>, PositionActsOn::nothing}};

}  // namespace

}  // namespace heed
