#pragma once

#include "tests/program.hpp"

// What the program is told, and what it and its files must say.

namespace heed::test {

inline std::size_t occurrences(std::string const& text, std::string const& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A text holds all of these.
inline void check_holds(std::string const& text, std::vector<std::string> const& parts) {
  INFO(text.substr(0, 4000));
  for (auto const& part : parts) CHECK_MESSAGE(text.find(part) != text.npos, "lacks: " << part);
}

/// A program has ended with this code, and its errors hold all of these.
inline void check_ends(Outcome const& outcome, int code, std::vector<std::string> const& errors = {}) {
  INFO(outcome.errors);
  CHECK(outcome.code == code);
  check_holds(outcome.errors, errors);
}

/// This command line with another command.
inline std::vector<std::string> as(std::string const& command, std::vector<std::string> arguments) {
  arguments.front() = command;
  return arguments;
}

/// The run of this name in a folder, trained anew with this configuration on the files there.
inline std::filesystem::path trained(Folder const& folder, std::string const& name, std::string const& config,
                                     std::vector<std::string> const& more = {}) {
  auto const file = (folder / (name + ".yaml")).string();
  put(file, "name: " + name + "\n" + config);
  run_well(joined({"run", file, "--output", folder.path().string(), "--quiet", "--fresh"}, more));
  return folder / name;
}

}  // namespace heed::test
