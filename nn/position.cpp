#include "nn/position.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"

namespace heed {

namespace {

std::vector<PositionKind>& registry() {
  static auto* const kinds = new std::vector<PositionKind>;
  return *kinds;
}

}  // namespace

DeclaredPosition::DeclaredPosition(PositionKind kind) {
  registry().push_back(std::move(kind));
  std::ranges::sort(registry(), {}, &PositionKind::name);
}

std::vector<PositionKind> const& position_kinds() { return registry(); }

std::vector<std::string> position_names() {
  std::vector<std::string> names;
  std::ranges::transform(registry(), std::back_inserter(names), &PositionKind::name);
  return names;
}

PositionKind const& position_kind(std::string const& name) {
  auto const found = std::ranges::find(registry(), name, &PositionKind::name);
  if (found == registry().end()) throw Error(fmt::format("position: '{}' is not one of {}", name, fmt::join(position_names(), ", ")));
  return *found;
}

namespace {

struct NoKeys : Settings {
  std::vector<Field> fields() override { return {}; }
};

std::shared_ptr<Settings> settings_of(PositionKind const& position) {
  return position.settings != nullptr ? position.settings() : std::make_shared<NoKeys>();
}

}  // namespace

PositionChoice::PositionChoice(std::string const& name) {
  for (PositionKind const& each : registry()) options.push_back({each.name, each.formula, [each] { return settings_of(each); }});
  kind = name;
  settings = settings_of(position_kind(name));
}

std::unique_ptr<Position> make_position(PositionChoice const& choice, Scope const& scope, PositionShape const& shape) {
  return position_kind(choice.kind).make(scope, shape, *choice.settings);
}

}  // namespace heed
