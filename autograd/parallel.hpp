#pragma once

#include <cstdint>

namespace heed {

/// How many threads the engine's one pool uses, all cores unless set (`--threads`). The matrix library underneath runs
/// single-threaded: splitting products by rows in this pool beats its own threading on the shapes of attention.
void set_threads(int count);
int threads();

/// Runs body(begin, end) over [0, n) cut into one stretch a thread; inline when n elements of `cost` nanoseconds each are not worth waking
/// the pool (about 5 µs), or inside another parallel region. Stretches depend on n and the number of threads only.
/// `align`: stretches begin at multiples of it.
template <class Body>
void parallel_for(std::int64_t n, double cost, Body const& body, std::int64_t align = 1);

namespace detail {
/// Calls run(context, begin, end) for every stretch, on the pool.
void parallel_stretches(std::int64_t n, std::int64_t align, void (*run)(void const*, std::int64_t, std::int64_t), void const* context);
bool worth_waking(double nanoseconds);
}  // namespace detail

template <class Body>
void parallel_for(std::int64_t n, double cost, Body const& body, std::int64_t align) {
  if (n <= 0) return;
  if (n <= align || !detail::worth_waking(static_cast<double>(n) * cost)) {
    body(std::int64_t{0}, n);
    return;
  }
  detail::parallel_stretches(
      n, align, [](void const* context, std::int64_t begin, std::int64_t end) { (*static_cast<Body const*>(context))(begin, end); }, &body);
}

}  // namespace heed
