#pragma once

#include <cstddef>
#include <cstdint>

#include "autograd/error.hpp"

namespace heed {

/// What an allocation throws if the system does not have the memory, or if a MemoryLimit (memory.hpp) does not allow it.
struct OutOfMemory : Error {
  /// `asked`: bytes of the allocation, besides those in use.
  OutOfMemory(std::size_t asked, std::int64_t in_use, double available);
  double needed, available;  ///< bytes, of all tensors
};

}  // namespace heed
