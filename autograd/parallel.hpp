#pragma once

#include <cstdint>

namespace heed {

/// How many threads the engine's one pool uses, all cores unless set (`--threads`). The matrix library underneath runs
/// single-threaded: splitting products by rows in this pool beats its own threading on the shapes of attention. Throws Error if
/// the system refuses that many.
void set_threads(int count);
int threads();

/// Which of them this is, in a region's body: 0 for the one that called.
int thread_index();

/// How [0, n) is cut.
enum class Cut {
  whole,  ///< one stretch a thread, which depend on n and the number of threads only
  fine,   ///< a few pieces for each thread, which takes them in order and then steals from the ends of the others': nobody waits for a core
          ///< that is slower or that another process wants. Results must not depend on who does what.
};

/// Runs body(begin, end) over [0, n) in parallel; inline when n elements of `cost` nanoseconds each are not worth waking the pool (about
/// 5 µs), or inside another parallel region. `align`: pieces begin at multiples of it.
template <class Body>
void parallel_for(std::int64_t n, double cost, Body const& body, std::int64_t align = 1, Cut cut = Cut::whole);

/// Runs body(sweep, begin, end) over [0, n) for each of `sweeps`, in fine pieces of a multiple of `align`. A piece of a sweep begins when
/// the same piece of the sweep before is done; others may not be.
template <class Body>
void parallel_sweeps(std::int64_t sweeps, std::int64_t n, double cost, Body const& body, std::int64_t align);

namespace detail {
using Run = void (*)(void const* context, std::int64_t sweep, std::int64_t begin, std::int64_t end);
void run_in_parallel(std::int64_t sweeps, std::int64_t n, std::int64_t piece, Run run, void const* context);
bool worth_waking(double nanoseconds);
/// Elements of a piece, a multiple of align.
std::int64_t whole_piece(std::int64_t n, std::int64_t align);
std::int64_t fine_piece(std::int64_t n, double cost, std::int64_t align);
}  // namespace detail

template <class Body>
void parallel_for(std::int64_t n, double cost, Body const& body, std::int64_t align, Cut cut) {
  if (n <= 0) return;
  if (n <= align || !detail::worth_waking(static_cast<double>(n) * cost)) {
    body(std::int64_t{0}, n);
    return;
  }
  detail::run_in_parallel(
      1, n, cut == Cut::fine ? detail::fine_piece(n, cost, align) : detail::whole_piece(n, align),
      [](void const* context, std::int64_t, std::int64_t begin, std::int64_t end) { (*static_cast<Body const*>(context))(begin, end); },
      &body);
}

template <class Body>
void parallel_sweeps(std::int64_t sweeps, std::int64_t n, double cost, Body const& body, std::int64_t align) {
  if (n <= 0) return;
  if (n <= align || !detail::worth_waking(static_cast<double>(sweeps * n) * cost)) {
    for (std::int64_t sweep = 0; sweep < sweeps; ++sweep) body(sweep, std::int64_t{0}, n);
    return;
  }
  detail::run_in_parallel(
      sweeps, n, detail::fine_piece(n, cost, align),
      [](void const* context, std::int64_t sweep, std::int64_t begin, std::int64_t end) {
        (*static_cast<Body const*>(context))(sweep, begin, end);
      },
      &body);
}

}  // namespace heed
