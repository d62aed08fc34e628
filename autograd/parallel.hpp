#pragma once

#include "autograd/index.hpp"

namespace heed {

// Any thread may begin a parallel region. The pool serves one at a time; one begun meanwhile runs on its thread alone, with the same bits.

/// Sets the number of threads of the engine's one pool; all cores unless set (`--threads`). The matrix library runs single-threaded:
/// splitting products by rows over this pool beats its own threading on the shapes of attention. Throws Error if the system cannot start
/// that many. Not while another thread of the program is computing: a product keeps room for as many threads as there were when it began.
void set_threads(int count);
int threads();

/// The index of the current thread inside a parallel region: 0 for the caller, and outside of regions.
int thread_index();

/// How [0, n) is cut.
enum class Cut {
  whole,  ///< one stretch per thread; depends on n and the number of threads only
  fine,  ///< several pieces per thread, taken in order and then stolen from other threads: no waiting for a slow or busy core. Results must
         ///< not depend on which thread does what
};

namespace detail {
using SweepBody = void (*)(void const* context, Index sweep, Index begin, Index end);
void run_in_parallel(Index sweeps, Index n, Index piece, SweepBody body, void const* context);
bool worth_waking(double nanoseconds);
/// Elements per piece, a multiple of align.
Index whole_piece(Index n, Index align);
Index fine_piece(Index n, double cost, Index align);
}  // namespace detail

/// Runs body(begin, end) over [0, n) in parallel; inline if n elements of `cost` nanoseconds each are too little work to wake the pool
/// (about 5 µs), or inside another parallel region. `align`: pieces begin at multiples of it.
template <class Body>
void parallel_for(Index n, double cost, Body const& body, Index align = 1, Cut cut = Cut::whole) {
  if (n <= 0) return;
  if (n <= align || !detail::worth_waking(static_cast<double>(n) * cost)) {
    body(Index{0}, n);
    return;
  }
  detail::run_in_parallel(
      1, n, cut == Cut::fine ? detail::fine_piece(n, cost, align) : detail::whole_piece(n, align),
      [](void const* context, Index, Index begin, Index end) { (*static_cast<Body const*>(context))(begin, end); }, &body);
}

/// Runs body(i) for every i of [0, n) in parallel, in fine pieces unless `cut` is whole.
template <class Body>
void parallel_each(Index n, double cost, Body const& body, Cut cut = Cut::fine) {
  parallel_for(
      n, cost,
      [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) body(i);
      },
      1, cut);
}

/// Runs body(sweep, begin, end) over [0, n) for each of `sweeps`, in fine pieces of a multiple of `align`. A piece of a sweep begins when
/// the same piece of the previous sweep is done, whether or not the others are.
template <class Body>
void parallel_sweeps(Index sweeps, Index n, double cost, Body const& body, Index align) {
  if (n <= 0) return;
  if (n <= align || !detail::worth_waking(static_cast<double>(sweeps * n) * cost)) {
    for (Index sweep = 0; sweep < sweeps; ++sweep) body(sweep, Index{0}, n);
    return;
  }
  detail::run_in_parallel(
      sweeps, n, detail::fine_piece(n, cost, align),
      [](void const* context, Index sweep, Index begin, Index end) { (*static_cast<Body const*>(context))(sweep, begin, end); }, &body);
}

}  // namespace heed
