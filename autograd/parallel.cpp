// The pool. Stretches are handed out by a counter, and the calling thread takes its share of them: a worker that another process keeps
// from running costs nothing but its help. Workers look out for the next job for a while before they sleep, because the regions of a
// training step follow each other within microseconds, and no longer than that, because other processes want the cores.

#include "autograd/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <immintrin.h>

#include "autograd/products.hpp"

namespace heed {

namespace {

thread_local bool inside_region = false;

using Run = void (*)(void const*, std::int64_t, std::int64_t);

class Pool {
 public:
  explicit Pool(int workers) {
    for (int i = 0; i < workers; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Pool() {
    stopping_ = true;
    announce();
    for (std::thread& worker : workers_) worker.join();
  }
  Pool(Pool const&) = delete;
  Pool& operator=(Pool const&) = delete;

  void run(std::int64_t n, std::int64_t align, std::int64_t stretches, Run body, void const* context) {
    job_ = {n, align, stretches, body, context};
    failure_ = nullptr;
    next_ = 0;
    open_ = true;
    announce();
    take_stretches();
    open_ = false;  // who comes now goes away again; who is in is waited for
    // A worker may share this core with its caller: spinning on would keep it from finishing.
    for (int look = 0; inside_ > 0; ++look) look < 1000 ? _mm_pause() : std::this_thread::yield();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct Job {
    std::int64_t n, align, stretches;
    Run body;
    void const* context;
  };

  void announce() {
    generation_.fetch_add(1);
    generation_.notify_all();
  }

  void take_stretches() {
    inside_region = true;
    std::int64_t const pieces = (job_.n + job_.align - 1) / job_.align;
    for (std::int64_t stretch = next_.fetch_add(1); stretch < job_.stretches; stretch = next_.fetch_add(1)) {
      try {
        std::int64_t const begin = pieces * stretch / job_.stretches * job_.align;
        std::int64_t const end = std::min(job_.n, pieces * (stretch + 1) / job_.stretches * job_.align);
        if (begin < end) job_.body(job_.context, begin, end);
      } catch (...) {
        std::lock_guard const lock(failing_);
        failure_ = std::current_exception();
      }
    }
    inside_region = false;
  }

  void work() {
    detail::keep_libraries_single_threaded();
    std::uint64_t seen = 0;
    while (!stopping_) {
      for (int look = 0; look < 2000 && generation_ == seen; ++look) _mm_pause();  // about 50 µs
      generation_.wait(seen);
      seen = generation_;
      ++inside_;
      if (open_) take_stretches();
      --inside_;
    }
  }

  Job job_{};
  std::exception_ptr failure_;
  std::mutex failing_;
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<std::uint64_t> generation_{0};
  alignas(64) std::atomic<int> inside_{0};
  std::atomic<bool> open_{false};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

int configured = 0;
std::unique_ptr<Pool> pool;

}  // namespace

void set_threads(int count) {
  configured = std::max(1, count);
  pool = configured > 1 ? std::make_unique<Pool>(configured - 1) : nullptr;
  detail::keep_libraries_single_threaded();
}

int threads() {
  if (configured == 0) set_threads(static_cast<int>(std::thread::hardware_concurrency()));
  return configured;
}

namespace detail {

bool worth_waking(double nanoseconds) { return nanoseconds > 5e3 && threads() > 1 && !inside_region; }

void parallel_stretches(std::int64_t n, std::int64_t align, Run run, void const* context) {
  pool->run(n, align, std::min<std::int64_t>(threads(), (n + align - 1) / align), run, context);
}

}  // namespace detail

}  // namespace heed
