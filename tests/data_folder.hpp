#pragma once

#include <cstdlib>

namespace heed::test {

/// The folder that an environment variable names (HEED_DATA, HEED_GOLDEN); null if it is not set or empty.
inline char const* data_folder(char const* variable) {
  char const* const name = std::getenv(variable);
  return name != nullptr && *name != '\0' ? name : nullptr;
}

}  // namespace heed::test
