#pragma once

#include <cstdint>

namespace heed {

/// While it lives, what would make more bytes live than `most` is refused: Error, and memory_use().peak says how many that would have been.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::int64_t most);
  ~MemoryLimit();
  MemoryLimit(MemoryLimit const&) = delete;
  MemoryLimit& operator=(MemoryLimit const&) = delete;

 private:
  std::int64_t before_;
};

}  // namespace heed
