#include "autograd/memory.hpp"

#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {

/// A block: this header, then `capacity` bytes that start on a cache line of their own.
struct alignas(64) Buffer::Block {
  std::atomic<std::int64_t> references;
  std::size_t capacity;
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

struct Pool {
  using Block = Buffer::Block;

  std::mutex mutex;
  std::unordered_map<std::size_t, std::vector<Block*>> idle;  // by capacity
  MemoryUse use;

  /// Never destroyed: tensors of static storage may outlive any order of destruction.
  static Pool& instance() {
    static Pool* const pool = new Pool;
    return *pool;
  }

  /// Sizes are rounded up to a quarter of a power of two: at most a fifth is wasted, and nearly equal sizes share blocks.
  static std::size_t capacity_for(std::size_t bytes) {
    if (bytes <= 64) return 64;
    std::size_t const step = std::max<std::size_t>(std::bit_floor(bytes - 1) / 4, 64);
    return (bytes + step - 1) / step * step;
  }

  Block* take(std::size_t bytes) {
    std::size_t const capacity = capacity_for(bytes);
    std::lock_guard const lock(mutex);
    auto& blocks = idle[capacity];
    Block* block = nullptr;
    if (blocks.empty()) {
      constexpr std::size_t address_space = std::size_t{1} << 47;
      void* const memory = capacity < address_space ? std::aligned_alloc(64, sizeof(Block) + capacity) : nullptr;
      if (memory == nullptr) throw Error(fmt::format("out of memory: {} bytes asked for, {} in use", bytes, use.live));
      block = new (memory) Block{0, capacity};
      ++use.system_allocations;
      use.reserved += static_cast<std::int64_t>(capacity);
    } else {
      block = blocks.back();
      blocks.pop_back();
    }
    use.live += static_cast<std::int64_t>(capacity);
    use.peak = std::max(use.peak, use.live);
    return block;
  }

  void give_back(Block* block) {
    std::lock_guard const lock(mutex);
    use.live -= static_cast<std::int64_t>(block->capacity);
    idle[block->capacity].push_back(block);
  }
};

MemoryUse memory_use() {
  std::lock_guard const lock(Pool::instance().mutex);
  return Pool::instance().use;
}

void reset_memory_peak() {
  std::lock_guard const lock(Pool::instance().mutex);
  Pool::instance().use.peak = Pool::instance().use.live;
}

void release_idle_memory() {
  Pool& pool = Pool::instance();
  std::lock_guard const lock(pool.mutex);
  for (auto& [capacity, blocks] : pool.idle) {
    for (auto* block : blocks) std::free(block);
    pool.use.reserved -= static_cast<std::int64_t>(capacity * blocks.size());
    blocks.clear();
  }
}

Buffer::Buffer(std::size_t bytes) : block_(Pool::instance().take(bytes)) { retain(); }

std::byte* Buffer::data() const { return block_ != nullptr ? block_->data() : nullptr; }

bool Buffer::sole_owner() const { return block_ != nullptr && block_->references.load(std::memory_order_acquire) == 1; }

void Buffer::retain() const {
  if (block_ != nullptr) block_->references.fetch_add(1, std::memory_order_relaxed);
}

void Buffer::release() {
  if (block_ != nullptr && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) Pool::instance().give_back(block_);
  block_ = nullptr;
}

}  // namespace heed
