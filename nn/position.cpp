#include "nn/position.hpp"

namespace heed {

template void Registry<PositionKind>::add(PositionKind);

PositionKind const& position_kind(std::string const& name) { return Registry<PositionKind>::at(name, "position: there is no"); }

PositionChoice::PositionChoice(std::string const& name) {
  for (PositionKind const& each : Registry<PositionKind>::all()) options.push_back({each.name, each.formula, each.settings});
  if (name.empty()) return;
  kind = name;
  settings = position_kind(name).settings();
}

std::unique_ptr<Position> make_position(PositionChoice const& choice, Scope const& scope, PositionShape const& shape) {
  return position_kind(choice.kind).make(scope, shape, *choice.settings);
}

}  // namespace heed
