#pragma once

#include <cstdint>

#include "autograd/memory.hpp"

namespace heed::test {

/// The most bytes that tensors hold during an action, beyond what they hold before it.
template <class Action>
std::int64_t peak_of(Action&& action) {
  std::int64_t const before = memory_use().live;
  reset_memory_peak();
  action();
  return memory_use().peak - before;
}

}  // namespace heed::test
