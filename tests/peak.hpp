#pragma once

#include "autograd/memory.hpp"

namespace heed::test {

/// The most bytes that tensors hold during an action, beyond what they hold before it.
template <class Action>
Index peak_of(Action&& action) {
  Index const before = memory_use().live;
  reset_memory_peak();
  action();
  return memory_use().peak - before;
}

}  // namespace heed::test
