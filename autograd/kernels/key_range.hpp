#pragma once

#include <cstdint>

namespace heed::kernels {

/// The keys that a query attends to, [first, last).
struct KeyRange {
  std::int64_t first, last;
};

}  // namespace heed::kernels
