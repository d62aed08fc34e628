#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "autograd/error.hpp"
#include "autograd/index.hpp"

namespace heed {

/// What an allocation throws if the system does not have the memory, or if a MemoryLimit does not allow it.
struct OutOfMemory : Error {
  /// `asked`: bytes of the allocation, besides those in use.
  OutOfMemory(std::size_t asked, Index in_use, double available);
  double needed, available;  ///< bytes, of all tensors; available: infinite where the system refused what the limit allowed
};

/// Counters of the pool, in bytes; `system_allocations` counts blocks requested from the system.
struct MemoryUse {
  Index live = 0;
  Index peak = 0;
  Index reserved = 0;
  Index system_allocations = 0;
};

MemoryUse memory_use();
/// Resets `peak` to what is live now.
void reset_memory_peak();
/// Returns the pool's idle blocks to the system.
void release_idle_memory();

/// A reference-counted, 64-byte aligned block of the pool. Freed blocks are kept by size, because a training step asks for the same sizes
/// again and page faults are expensive (0.2 ms for 384 KB).
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes);
  /// Represents memory outside the pool: keeps `owner` alive while referenced. data() is not that memory.
  explicit Buffer(std::shared_ptr<void> owner);
  Buffer(Buffer const& other) : block_(other.block_) { retain(); }
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() { release(); }

  std::byte* data() const;
  /// Whether this is the only reference; false for memory outside the pool.
  bool sole_owner() const;
  /// How often the memory has been handed out for writing since allocation; 0 without memory.
  std::uint32_t writes() const { return block_ != nullptr ? block_->writes.load(std::memory_order_relaxed) : 0; }
  /// Records that the memory will be written to. Needs no atomic increment: threads that write to one array write different parts.
  void count_write() {
    if (block_ != nullptr) block_->writes.store(block_->writes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  friend struct MemoryPool;
  /// This header is followed by `capacity` bytes, which start on a cache line.
  struct alignas(64) Block {
    std::atomic<Index> references;
    std::size_t capacity;
    bool resident;             ///< false: the system has its pages back, or has never provided them
    bool holds_owner = false;  ///< its content is a shared_ptr to memory outside the pool
    std::atomic<std::uint32_t> writes = 0;
    std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  };
  void retain() const;
  void release();
  Block* block_ = nullptr;
};

/// While it lives, an allocation that would raise live bytes above `max_live` throws Error; memory_use().peak then has that number.
class MemoryLimit {
 public:
  explicit MemoryLimit(Index max_live);
  ~MemoryLimit();
  MemoryLimit(MemoryLimit const&) = delete;
  MemoryLimit& operator=(MemoryLimit const&) = delete;

 private:
  Index before_;
};

}  // namespace heed
