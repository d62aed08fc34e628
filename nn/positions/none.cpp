// Nothing: order is known only through the causal mask.

#include "nn/position.hpp"

namespace heed {

namespace {

struct None : Position {};

Declared<PositionKind> const none_position{
    {"none", "nothing added: order only through the causal mask", "Haviv et al. 2022", "defined",
     [](Scope const&, PositionShape const&, Settings const&) -> std::unique_ptr<Position> { return std::make_unique<None>(); }}};

}  // namespace

}  // namespace heed
