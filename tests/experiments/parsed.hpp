#pragma once

#include "experiments/commands/commands.hpp"
#include "experiments/config/yaml.hpp"
#include "tests/refusal.hpp"

// A command line as it is read.

namespace heed::test {

using Words = std::vector<std::string>;

inline CommandLine parsed(std::vector<std::string> const& arguments) { return parse_command_line(arguments); }

/// What a command has read, of the type of its options.
template <class Options>
Options read(CommandLine const& line) {
  return *static_cast<Options const*>(line.options.get());
}
template <class Options>
Options read(std::vector<std::string> const& arguments) {
  return read<Options>(parsed(arguments));
}

inline std::string refused(std::vector<std::string> const& arguments) {
  return refusal<ConfigError>([&] { parse_command_line(arguments); });
}

}  // namespace heed::test
