#pragma once

#include <stdexcept>
#include <string>

namespace heed {

/// Anything heed refuses to do. The message names the operation and the shapes or the place, and is one line.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file that cannot be read as what it should be (data, checkpoint, catalogue): the message begins with its path.
struct FileError : Error {
  using Error::Error;
};

}  // namespace heed
