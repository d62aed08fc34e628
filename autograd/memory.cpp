#include "autograd/memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace heed {

namespace {

#ifdef HEED_SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// Adds to a counter; the value before. While the process certainly has one thread it does so without a locked instruction, as the
/// standard library's shared_ptr does: those were 5 % of decoding a token with nano.
Index count(std::atomic<Index>& counter, Index change) {
#if __has_include(<sys/single_threaded.h>)
  if (__libc_single_threaded != 0) {
    auto const before = counter.load(std::memory_order_relaxed);
    counter.store(before + change, std::memory_order_relaxed);
    return before;
  }
#endif
  return counter.fetch_add(change, std::memory_order_acq_rel);
}

/// Returns whole pages to the system, losing their content. Linux takes them at once; elsewhere MADV_DONTNEED may keep them.
#if defined(__linux__)
constexpr int give_up = MADV_DONTNEED;
#else
constexpr int give_up = MADV_FREE;
#endif

/// Sizes are rounded up to a quarter of a power of two: at most a fifth is wasted, and nearly equal sizes share blocks.
struct SizeClass {
  explicit SizeClass(std::size_t bytes) {
    std::size_t const below = std::max<std::size_t>(std::bit_floor(std::max<std::size_t>(bytes, 1) - 1), 64);
    std::size_t const step = std::max<std::size_t>(below / 4, 64);
    std::size_t const steps = bytes <= below ? 0 : (bytes - below + step - 1) / step;  // 0: 64 bytes and less; else 1 … 4
    capacity = below + steps * step;
    index = static_cast<std::size_t>(std::bit_width(below)) * 4 + steps;
  }
  std::size_t capacity, index;
};

}  // namespace

/// Address space from which blocks are cut consecutively. It is requested in large pieces on huge pages: with small pages a training step
/// is 4 % slower, and reading weights of 40 MB takes 1.5 times as long (page walks). Memory is used only where it is touched.
class Slabs {
 public:
  /// Null if there is no address space left.
  void* cut(std::size_t bytes) {
    if (sanitized) return std::aligned_alloc(64, bytes);  // the sanitizer sees where each block ends
    if (bytes > left_ && !map(std::max(size, (bytes + huge - 1) / huge * huge))) return nullptr;
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }

 private:
  static constexpr std::size_t huge = std::size_t{1} << 21;
  static constexpr std::size_t size = 32 * huge;

  bool map(std::size_t bytes) {
    void* const start = ::mmap(nullptr, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return false;
    auto* const first = static_cast<std::byte*>(start);
    auto const skipped = (huge - reinterpret_cast<std::uintptr_t>(first) % huge) % huge;
    next_ = first + skipped;
    left_ = bytes;
#ifdef MADV_HUGEPAGE  // where the system provides huge pages on request
    ::madvise(next_, bytes, MADV_HUGEPAGE);
#endif
    return true;
  }

  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

OutOfMemory::OutOfMemory(std::size_t asked, Index in_use, double there)
    : Error(fmt::format("out of memory: {} bytes asked for, {} in use", asked, in_use)),
      needed(static_cast<double>(asked) + static_cast<double>(in_use)),
      available(there) {}

struct MemoryPool {
  using Block = Buffer::Block;

  std::mutex mutex;
  Slabs slabs;
  std::array<std::vector<Block*>, 50 * 4> idle;  // by SizeClass::index
  MemoryUse use;
  Index max_live = std::numeric_limits<Index>::max();  // live

  /// Never destroyed: static tensors may outlive it in any order of destruction.
  static MemoryPool& instance() {
    static MemoryPool* const pool = new MemoryPool;
    return *pool;
  }

  Block* take(std::size_t bytes) {
    constexpr std::size_t address_space = std::size_t{1} << 46;
    std::lock_guard const lock(mutex);
    if (bytes > address_space) throw OutOfMemory(bytes, use.live, static_cast<double>(address_space));
    SizeClass const of_size(bytes);
    auto const live = use.live + static_cast<Index>(of_size.capacity);
    if (live > max_live) {
      use.peak = std::max(use.peak, live);
      throw OutOfMemory(of_size.capacity, use.live, static_cast<double>(max_live));
    }
    auto& blocks = idle[of_size.index];
    Block* block = nullptr;
    if (blocks.empty()) {
      void* const memory = slabs.cut(sizeof(Block) + of_size.capacity);
      if (memory == nullptr) throw OutOfMemory(of_size.capacity, use.live, std::numeric_limits<double>::infinity());
      block = new (memory) Block{.references = 0, .capacity = of_size.capacity, .resident = false};
    } else {
      block = blocks.back();
      blocks.pop_back();
    }
    if (!block->resident) {
      block->resident = true;
      ++use.system_allocations;
      use.reserved += static_cast<Index>(block->capacity);
    }
    use.live = live;
    use.peak = std::max(use.peak, live);
    return block;
  }

  void give_back(Block* block) {
    std::lock_guard const lock(mutex);
    use.live -= static_cast<Index>(block->capacity);
    idle[SizeClass(block->capacity).index].push_back(block);
  }

  /// Gives the pages that lie wholly inside an idle block back to the system.
  void release(Block* block) {
    static auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));  // 16 KiB on Apple silicon
    auto const first = (reinterpret_cast<std::uintptr_t>(block->data()) + page - 1) / page * page;
    auto const last = (reinterpret_cast<std::uintptr_t>(block->data()) + block->capacity) / page * page;
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, give_up);
    block->resident = false;
    use.reserved -= static_cast<Index>(block->capacity);
  }
};

MemoryUse memory_use() {
  std::lock_guard const lock(MemoryPool::instance().mutex);
  return MemoryPool::instance().use;
}

void reset_memory_peak() {
  std::lock_guard const lock(MemoryPool::instance().mutex);
  MemoryPool::instance().use.peak = MemoryPool::instance().use.live;
}

MemoryLimit::MemoryLimit(Index max_live) {
  std::lock_guard const lock(MemoryPool::instance().mutex);
  auto& limit = MemoryPool::instance().max_live;
  before_ = std::exchange(limit, std::min(limit, max_live));  // an earlier limit holds too
}

MemoryLimit::~MemoryLimit() {
  std::lock_guard const lock(MemoryPool::instance().mutex);
  MemoryPool::instance().max_live = before_;
}

void release_idle_memory() {
  MemoryPool& pool = MemoryPool::instance();
  std::lock_guard const lock(pool.mutex);
  for (auto const& blocks : pool.idle) {
    for (auto* block : blocks) {
      if (block->resident) pool.release(block);
    }
  }
}

Buffer::Buffer(std::shared_ptr<void> owner) : Buffer(sizeof(owner)) {
  new (block_->data()) std::shared_ptr<void>(std::move(owner));
  block_->holds_owner = true;
}

Buffer::Buffer(std::size_t bytes) : block_(MemoryPool::instance().take(bytes)) { retain(); }

std::byte* Buffer::data() const { return block_ != nullptr ? block_->data() : nullptr; }

bool Buffer::sole_owner() const {
  return block_ != nullptr && !block_->holds_owner && block_->references.load(std::memory_order_acquire) == 1;
}

void Buffer::retain() const {
  if (block_ != nullptr) count(block_->references, 1);
}

void Buffer::release() {
  if (block_ != nullptr && count(block_->references, -1) == 1) {
    if (std::exchange(block_->holds_owner, false)) std::destroy_at(reinterpret_cast<std::shared_ptr<void>*>(block_->data()));
    MemoryPool::instance().give_back(block_);
  }
  block_ = nullptr;
}

}  // namespace heed
