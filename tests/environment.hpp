#pragma once

#include "tests/test.hpp"

namespace heed::test {

/// Sets an environment variable, or unsets it, while it lives.
class Environment {
 public:
  Environment(char const* name, std::optional<std::string> const& value) : name_(name) {
    if (auto const* const now = std::getenv(name)) before_ = now;
    set(value);
  }
  ~Environment() { set(before_); }
  Environment(Environment const&) = delete;
  Environment& operator=(Environment const&) = delete;

 private:
  void set(std::optional<std::string> const& value) const { value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_); }

  char const* name_;
  std::optional<std::string> before_;
};

}  // namespace heed::test
