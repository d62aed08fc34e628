#include "nn/position.hpp"

namespace heed {

template void Registry<PositionKind>::add(PositionKind);

PositionKind const& position_kind(std::string const& name) { return Registry<PositionKind>::at(name, "position: there is no"); }

namespace {

std::shared_ptr<Settings> settings_of(PositionKind const& position) {
  return position.settings != nullptr ? position.settings() : std::make_shared<Settings>();
}

}  // namespace

PositionChoice::PositionChoice() {
  for (PositionKind const& each : Registry<PositionKind>::all())
    options.push_back({each.name, each.formula, [each] { return settings_of(each); }});
}

PositionChoice::PositionChoice(std::string const& name) : PositionChoice() {
  kind = name;
  settings = settings_of(position_kind(name));
}

std::unique_ptr<Position> make_position(PositionChoice const& choice, Scope const& scope, PositionShape const& shape) {
  return position_kind(choice.kind).make(scope, shape, *choice.settings);
}

}  // namespace heed
