#include "nn/position.hpp"

#include <algorithm>

#include <fmt/format.h>

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

std::unique_ptr<Position> make_position(std::string const& name, Scope const& scope, PositionShape const& shape) {
  auto const found = std::ranges::find(registry(), name, &PositionKind::name);
  if (found == registry().end()) throw Error(fmt::format("position: '{}' is not one of {}", name, fmt::join(position_names(), ", ")));
  return found->make(scope, shape);
}

}  // namespace heed
