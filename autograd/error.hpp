#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace heed {

/// Anything heed refuses to do. The message names the operation and the shapes or the place, and is one line. A zero in it (a path or a
/// name from a file may hold one) becomes "\x00": what() would end there.
struct Error : std::runtime_error {
  explicit Error(std::string message) : std::runtime_error(without_zeros(std::move(message))) {}

 private:
  static std::string without_zeros(std::string message) {
    for (std::size_t at = 0; (at = message.find('\0', at)) != message.npos;) message.replace(at, 1, "\\x00");
    return message;
  }
};

/// A file that cannot be read as what it should be (data, checkpoint, catalogue): the message begins with its path.
struct FileError : Error {
  using Error::Error;
};

}  // namespace heed
