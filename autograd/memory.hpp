#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace heed {

/// Counters of the pool, in bytes; `system_allocations` counts blocks whose memory came from the system, and not from the pool.
struct MemoryUse {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  std::int64_t reserved = 0;
  std::int64_t system_allocations = 0;
};

MemoryUse memory_use();
/// Starts `peak` again from what is live now.
void reset_memory_peak();
/// Gives the pool's idle blocks back to the system.
void release_idle_memory();

/// A counted reference to a 64-byte aligned block of the pool. A training step asks for the same sizes again and again: a fresh
/// block costs page faults (0.2 ms for 384 KB), a recycled one nothing, so freed blocks are kept by size.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes);
  /// Stands for memory that is not the pool's: holds `owner` as long as there is a reference. Its own data() is not that memory.
  explicit Buffer(std::shared_ptr<void> owner);
  Buffer(Buffer const& other) : block_(other.block_) { retain(); }
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() { release(); }

  explicit operator bool() const { return block_ != nullptr; }
  std::byte* data() const;
  /// Whether nobody else can see the memory; never of what is not the pool's.
  bool sole_owner() const;
  /// How often its memory has been given out to be written to, since it was taken; 0 of none.
  std::uint32_t writes() const { return block_ != nullptr ? block_->writes.load(std::memory_order_relaxed) : 0; }
  /// Says that the memory is about to be written to. No locked instruction: who write to one array at once write different parts of it.
  void count_write() {
    if (block_ != nullptr) block_->writes.store(block_->writes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  friend struct MemoryPool;
  /// This header, then `capacity` bytes that start on a cache line of their own.
  struct alignas(64) Block {
    std::atomic<std::int64_t> references;
    std::size_t capacity;
    bool resident;             ///< false: the system has its pages back, or has never given them
    bool holds_owner = false;  ///< what it holds is a shared_ptr to memory that is not the pool's
    std::atomic<std::uint32_t> writes = 0;
    std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  };
  void retain() const;
  void release();
  Block* block_ = nullptr;
};

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
