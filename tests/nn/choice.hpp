#pragma once

#include "nn/settings.hpp"
#include "tests/test.hpp"

namespace heed::test {

using Value = std::variant<bool, Index, double, std::string, std::vector<double>, std::vector<std::string>>;
using Keys = std::vector<std::pair<std::string, Value>>;

/// The choice of a kind, with some of its fields set: what a section {kind: …, field: value, …} of a file makes.
inline Choice chosen(Choice choice, std::string const& kind, Keys const& values = {}) {
  auto const option = std::ranges::find(choice.options, kind, &Choice::Option::name);
  REQUIRE(option != choice.options.end());
  choice.kind = kind;
  choice.settings = option->make();
  auto const fields = choice.settings->fields();
  for (auto const& entry : values) {
    CAPTURE(entry.first);
    auto const field = std::ranges::find(fields, entry.first, &Field::name);
    REQUIRE(field != fields.end());
    std::visit(
        [&](auto const& v) {
          using V = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<V, Index> || std::is_same_v<V, double> || std::is_same_v<V, std::string>) {
            if (auto* const maybe = std::get_if<std::optional<V>*>(&field->target)) return static_cast<void>(**maybe = v);
          }
          *std::get<V*>(field->target) = v;
        },
        entry.second);
  }
  return choice;
}

}  // namespace heed::test
