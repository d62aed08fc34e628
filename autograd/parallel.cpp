// The pool, with work stealing. Each thread starts with its own pieces, the same in every region of this shape, so that its caches hold
// their data, and then steals from the ends of the others': a worker that is preempted by another process delays nobody. Workers spin
// before they sleep, since a training step's regions are microseconds apart, but briefly, to leave the cores to other processes.

#include "autograd/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/processor/processor.hpp"

namespace heed {

namespace {

thread_local bool inside_region = false;  // then regions that begin on this thread run on it alone
thread_local int index_of_thread = 0;

/// Pieces [front, back) that have not been started.
class WorkRange {
 public:
  void assign(Index front, Index back) { both_ = packed(front, back); }
  /// Takes the first piece; a thief takes the last.
  std::optional<Index> take(bool steals) {
    for (std::uint64_t both = both_;;) {
      auto const front = static_cast<Index>(both >> 32), back = static_cast<Index>(both & 0xffffffff);
      if (front >= back) return {};
      if (both_.compare_exchange_weak(both, steals ? packed(front, back - 1) : packed(front + 1, back))) return steals ? back - 1 : front;
    }
  }

 private:
  static std::uint64_t packed(Index front, Index back) {
    return static_cast<std::uint64_t>(front) << 32 | static_cast<std::uint64_t>(back);
  }
  std::atomic<std::uint64_t> both_{0};
};

/// Spins until the condition holds. Yields at times, because the awaited thread may share this core.
template <class Condition>
void wait_until(Condition const& holds) {
  for (int look = 0; !holds(); ++look) look < 1000 ? pause() : std::this_thread::yield();
}

class ThreadPool {
 public:
  explicit ThreadPool(int threads) : threads_(threads) {
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
    } catch (std::system_error const& error) {
      auto const started = workers_.size() + 1;
      stop();
      throw Error(fmt::format("{} threads cannot be started, only {}: {} (--threads asks for fewer)", threads, started, error.what()));
    } catch (...) {
      stop();
      throw;
    }
  }
  ~ThreadPool() { stop(); }
  ThreadPool(ThreadPool const&) = delete;
  ThreadPool& operator=(ThreadPool const&) = delete;

  int threads() const { return threads_; }

  void run(Index sweeps, Index n, Index piece, detail::SweepBody body, void const* context) {
    job_ = {sweeps, n, piece, body, context};
    failure_ = nullptr;
    lay_out((n + piece - 1) / piece);
    open_ = true;
    announce();
    take_pieces();
    open_ = false;  // late threads leave again; those inside are awaited
    wait_until([this] { return inside_ == 0; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));  // the pool keeps none: another thread would free it
  }

 private:
  struct ParallelJob {
    Index sweeps, n, piece;
    detail::SweepBody body;
    void const* context;
  };

  void stop() {
    stopping_ = true;
    announce();
    for (std::thread& worker : workers_) worker.join();
  }

  void announce() {
    generation_.fetch_add(1);
    generation_.notify_all();
  }

  /// Every thread's pieces of every sweep, and how many sweeps of each piece are done.
  void lay_out(Index pieces) {
    auto const lists = static_cast<std::size_t>(job_.sweeps * threads_);
    if (lists > room_) left_ = std::make_unique<WorkRange[]>(room_ = lists);
    for (Index i = 0; i < job_.sweeps * threads_; ++i)
      at(left_, i).assign(pieces * (i % threads_) / threads_, pieces * (i % threads_ + 1) / threads_);
    if (job_.sweeps > 1) done_ = std::vector<std::atomic<Index>>(static_cast<std::size_t>(pieces));
  }

  void take_pieces() {
    Temporarily const inside(inside_region, true);
    for (Index sweep = 0; sweep < job_.sweeps; ++sweep) {
      for (int i = 0; i < threads_; ++i) {
        WorkRange& left = at(left_, sweep * threads_ + (index_of_thread + i) % threads_);
        while (auto const piece = left.take(i > 0)) do_piece(sweep, *piece);
      }
    }
  }

  void do_piece(Index sweep, Index piece) {
    auto* const done = job_.sweeps > 1 ? &at(done_, piece) : nullptr;
    if (done != nullptr) wait_until([=] { return *done == sweep; });
    try {
      job_.body(job_.context, sweep, piece * job_.piece, std::min(job_.n, (piece + 1) * job_.piece));
    } catch (...) {
      std::lock_guard const lock(failing_);
      failure_ = std::current_exception();
    }
    if (done != nullptr) *done = sweep + 1;
  }

  void work(int index) {
    index_of_thread = index;
    std::uint64_t seen = 0;
    while (!stopping_) {
      for (int look = 0; look < 2000 && generation_ == seen; ++look) pause();  // about 50 µs
      generation_.wait(seen);
      seen = generation_;
      ++inside_;
      if (open_) take_pieces();
      --inside_;
    }
  }

  int threads_;
  ParallelJob job_{};
  std::size_t room_ = 0;
  std::unique_ptr<WorkRange[]> left_;  // [sweeps, threads]
  std::vector<std::atomic<Index>> done_;
  std::exception_ptr failure_;
  std::mutex failing_;
  alignas(64) std::atomic<std::uint64_t> generation_{0};
  alignas(64) std::atomic<int> inside_{0};
  std::atomic<bool> open_{false};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

std::atomic<int> configured = 0;
std::mutex turn;  // whose holder uses the pool, or replaces it
std::unique_ptr<ThreadPool> pool;

}  // namespace

void set_threads(int count) {
  count = std::max(1, count);
  std::lock_guard const lock(turn);
  if (count > 1 && (!pool || pool->threads() != count)) {  // with one thread it rests: going back to it cannot fail
    pool.reset();
    try {
      pool = std::make_unique<ThreadPool>(count);
    } catch (...) {
      configured = 1;
      throw;
    }
  }
  configured = count;
}

int threads() {
  if (int const count = configured.load(std::memory_order_relaxed); count != 0) return count;
  set_threads(static_cast<int>(std::thread::hardware_concurrency()));
  return configured;
}

int thread_index() { return index_of_thread; }

namespace detail {

bool worth_waking(double nanoseconds) { return nanoseconds > 5e3 && threads() > 1 && !inside_region; }

Index whole_piece(Index n, Index align) {
  Index const units = (n + align - 1) / align;
  return (units + threads() - 1) / threads() * align;
}

Index fine_piece(Index n, double cost, Index align) {
  constexpr Index max_pieces = 16;          // of a thread
  constexpr double min_nanoseconds = 10e3;  // of a piece
  auto const whole = whole_piece(n, align), enough = static_cast<Index>(min_nanoseconds / cost);
  auto const elements = std::clamp(enough, (whole + max_pieces - 1) / max_pieces, whole);
  return std::min(whole, (elements + align - 1) / align * align);
}

void run_in_parallel(Index sweeps, Index n, Index piece, SweepBody body, void const* context) {
  std::unique_lock const lock(turn, std::try_to_lock);
  if (lock && pool) return pool->run(sweeps, n, piece, body, context);
  Temporarily const alone(inside_region, true);  // another thread has the pool
  for (Index sweep = 0; sweep < sweeps; ++sweep)
    for (Index begin = 0; begin < n; begin += piece) body(context, sweep, begin, std::min(n, begin + piece));
}

}  // namespace detail

}  // namespace heed
