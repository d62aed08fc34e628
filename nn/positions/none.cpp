// Nothing: order is known only through the causal mask.

#include "nn/position.hpp"

namespace heed {

namespace {

struct None : Position {};

Declared<PositionKind> const none_position{{"none", "nothing added: order only through the causal mask", "Haviv et al. 2022", "defined",
                                            position_of<None>, nullptr, false, PositionActsOn::nothing}};

}  // namespace

}  // namespace heed
