#pragma once

#include "autograd/error.hpp"
#include "tests/test.hpp"

namespace heed::test {

/// The message of the error of this kind that an action throws; "" if it throws none.
template <class E = Error>
std::string refusal(std::function<void()> const& action) {
  try {
    action();
  } catch (E const& error) {
    return error.what();
  }
  return "";
}

/// Checks that a message is one line, not too long, that begins with a path, or one below it, and holds a phrase.
inline void check_refusal(std::string const& message, std::filesystem::path const& path, std::string const& phrase) {
  INFO(message);
  CHECK((message.starts_with(path.string() + ": ") || message.starts_with(path.string() + "/")));
  CHECK_MESSAGE(message.find(phrase) != message.npos, "should say: ", phrase);
  CHECK(message.find('\n') == message.npos);
  CHECK(message.size() < path.string().size() + 400);
}

/// A text that is wrong, and what is said of it.
struct Wrong {
  std::string text, message;
};

/// Checks of each text that reading it throws an E that says so, in one line.
template <class E>
void check_refusals(std::function<void(std::string const&)> const& read, std::vector<Wrong> const& rows) {
  for (auto const& row : rows) {
    CAPTURE(row.text);
    std::string const said = refusal<E>([&] { read(row.text); });
    CHECK_MESSAGE(said.find(row.message) != said.npos, said, " should say: ", row.message);
    CHECK((!said.empty() && said.find('\n') == said.npos));
  }
}

}  // namespace heed::test
