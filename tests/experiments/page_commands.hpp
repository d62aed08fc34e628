#pragma once

#include "tests/experiments/said.hpp"

// The commands that the pages tell their readers to type.

namespace heed::test {

/// A command of a page.
struct Command {
  std::string location;  ///< "README.md:29"
  std::vector<std::string> words;
  std::string comment;
};

/// Words as a shell has them: quotes keep what is between them together.
inline std::vector<std::string> split(std::string const& line) {
  std::vector<std::string> words;
  char quote = 0;
  bool inside = false;
  for (char const c : line) {
    bool const is_quote = quote != 0 ? c == quote : c == '"' || c == '\'';
    bool const was_inside = std::exchange(inside, quote != 0 || c != ' ');
    if (inside && !was_inside) words.emplace_back();
    if (is_quote)
      quote = quote != 0 ? char{0} : c;
    else if (inside)
      words.back() += c;
  }
  return words;
}

/// The indented lines that begin with ./heed; what stands behind a # is their comment.
inline std::vector<Command> commands(std::string const& manual) {
  std::vector<Command> found;
  int number = 0;
  for (auto const& line : lines_of(get(manual))) {
    ++number;
    if (!line.starts_with("    ./heed ")) continue;
    auto const hash = std::min(line.find(" #"), line.size());
    found.push_back({fmt::format("{}:{}", manual, number), split(line.substr(0, hash)), line.substr(hash)});
  }
  return found;
}

}  // namespace heed::test
