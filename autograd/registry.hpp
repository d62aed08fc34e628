#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "autograd/index.hpp"

namespace heed {

template <class Kind>
std::string const& name_of(Kind const& kind) {
  return kind.name;
}

/// All kinds of a thing (scores, models, metrics, data), each declared beside its definition. Ordered by order(), else by name; a
/// kind that has neither is declared once, since several would be in the order in which files are linked.
template <class Kind>
class Registry {
 public:
  static std::vector<Kind> const& all() { return kinds(); }

  static std::vector<std::string> names() {
    return mapped(kinds(), [](Kind const& kind) { return std::string(name_of(kind)); });
  }

  /// Null if there is none of this name.
  static Kind const* find(std::string_view name) {
    auto const found = std::ranges::find(kinds(), name, [](Kind const& kind) -> std::string_view { return name_of(kind); });
    return found == kinds().end() ? nullptr : &*found;
  }

  /// Throws Error if there is none of this name: "SORT 'NAME'; there are …", with `sort` such as "cell: there is no".
  static Kind const& at(std::string_view name, std::string_view sort) {
    if (auto const* const found = find(name)) return *found;
    throw Error(fmt::format("{} '{}'; there are {}", sort, name, fmt::join(names(), ", ")));
  }

  static void add(Kind kind) {
    auto const order = [](Kind const& each) {
      if constexpr (requires { each.order(); })
        return each.order();
      else if constexpr (requires { each.order; })
        return each.order;
      else if constexpr (requires { each.name; })
        return std::string_view(each.name);
      else
        return 0;
    };
    kinds().insert(std::ranges::upper_bound(kinds(), order(kind), {}, order), std::move(kind));
  }

 private:
  /// Created on first use and never destroyed, because declarations are static objects of many files.
  static std::vector<Kind>& kinds() {
    static auto* const all = new std::vector<Kind>;
    return *all;
  }
};

/// Registers a kind, and what it declares in turn (declare()): `Declared<ScoreKind> const dot_score{{"dot", …}};` beside its definition.
template <class Kind>
struct Declared {
  explicit Declared(Kind kind) {
    if constexpr (requires { kind.declare(); }) kind.declare();
    Registry<Kind>::add(std::move(kind));
  }
};

}  // namespace heed
