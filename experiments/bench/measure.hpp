#pragma once

#include <cstdint>
#include <functional>

namespace heed {

/// What repeating a piece of work showed.
struct Measurement {
  double median_ms = 0, min_ms = 0, max_ms = 0;  ///< wall time of one repetition
  std::int64_t peak_bytes = 0;                   ///< most that the engine's pool held during one, beyond what it held before
  int repetitions = 0;
};

/// Repeats `work` for about `seconds`, but three times at least, after once to warm up. Throws what `work` throws.
Measurement measure(std::function<void()> const& work, double seconds);

}  // namespace heed
