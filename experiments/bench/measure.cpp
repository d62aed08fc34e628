#include "experiments/bench/measure.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "autograd/memory.hpp"

namespace heed {

Measurement measure(std::function<void()> const& work, double seconds) {
  using Clock = std::chrono::steady_clock;
  auto const timed = [&] {
    auto const start = Clock::now();
    work();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  reset_memory_peak();
  auto const before = memory_use().live;
  timed();
  Measurement result;
  result.peak_bytes = memory_use().peak - before;

  std::vector<double> times;
  for (double total = 0; times.size() < 3 || total < 1e3 * seconds; total += times.back()) times.push_back(timed());
  std::ranges::sort(times);
  auto const middle = times.size() / 2;
  result.median_ms = times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  result.min_ms = times.front();
  result.max_ms = times.back();
  result.repetitions = static_cast<int>(times.size());
  return result;
}

}  // namespace heed
