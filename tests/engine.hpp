#pragma once

#include "autograd/memory.hpp"
#include "autograd/ops/loss.hpp"
#include "autograd/parallel.hpp"

// Settings of the engine that a test changes, and what it measures of it.

namespace heed {

namespace test {

/// While it lives, a setting of the engine has another value.
template <auto get, auto set>
class With {
 public:
  explicit With(decltype(get()) value) : before_(get()) { set(value); }
  ~With() { set(before_); }
  With(With const&) = delete;
  With& operator=(With const&) = delete;

 private:
  decltype(get()) before_;
};

/// Logits of so many bytes are held whole.
using LogitsWithin = With<logits_bytes, set_logits_bytes>;

/// The most bytes that tensors hold during an action, beyond what they hold before it.
template <class Action>
Index peak_of(Action&& action) {
  Index const before = memory_use().live;
  reset_memory_peak();
  action();
  return memory_use().peak - before;
}

}  // namespace test

/// So many threads are used.
using Threads = test::With<threads, set_threads>;

}  // namespace heed
