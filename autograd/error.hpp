#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace heed {

/// An error with a message of one line, which names the operation and the shapes or the location. A zero byte in it (from a path or a file)
/// becomes "\x00", because what() would end there.
struct Error : std::runtime_error {
  explicit Error(std::string message) : std::runtime_error(without_zeros(std::move(message))) {}

 private:
  static std::string without_zeros(std::string message) {
    for (std::size_t at = 0; (at = message.find('\0', at)) != message.npos;) message.replace(at, 1, "\\x00");
    return message;
  }
};

/// A file that cannot be read or has the wrong content: the message begins with its path.
struct FileError : Error {
  using Error::Error;
};

}  // namespace heed
