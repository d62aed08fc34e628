#pragma once

#include "autograd/parallel.hpp"

namespace heed {

/// Uses `count` threads while it lives.
class Threads {
 public:
  explicit Threads(int count) : before_(threads()) { set_threads(count); }
  ~Threads() { set_threads(before_); }
  Threads(Threads const&) = delete;
  Threads& operator=(Threads const&) = delete;

 private:
  int before_;
};

}  // namespace heed
