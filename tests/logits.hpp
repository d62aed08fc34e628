#pragma once

#include "autograd/ops/loss.hpp"

namespace heed::test {

/// While it lives, logits of so many bytes are held whole.
class LogitsWithin {
 public:
  explicit LogitsWithin(Index bytes) : before_(logits_bytes()) { set_logits_bytes(bytes); }
  ~LogitsWithin() { set_logits_bytes(before_); }
  LogitsWithin(LogitsWithin const&) = delete;
  LogitsWithin& operator=(LogitsWithin const&) = delete;

 private:
  Index before_;
};

}  // namespace heed::test
