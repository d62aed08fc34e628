#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace heed {

/// What repeating a piece of work showed.
struct Measurement {
  double median_ms = 0, min_ms = 0, max_ms = 0;  ///< wall time of one repetition
  std::int64_t peak_bytes = 0;                   ///< most that the engine's pool held during one, beyond what it held before
  double product_gflop = 0;                      ///< of matrix products in one repetition: those that were executed, 10⁹ operations
  int repetitions = 0;

  /// 10⁹ operations of matrix products a second, by the median.
  double gflops() const { return 1e3 * product_gflop / median_ms; }
};

/// Adds the times, their number and the memory to a row of JSON.
void add_to(nlohmann::ordered_json& row, Measurement const& m);

/// Repeats `work` for about `seconds`, but three times at least, after once to warm up. Throws what `work` throws.
Measurement measure(std::function<void()> const& work, double seconds);

/// The machine's peak in matrix products as products() are set: 10⁹ operations a second of products [1536, 1536]², the median as of all
/// else, cut among the threads as every product is.
double peak_gflops();

/// How near a piece of work comes to peak_gflops().
struct PeakShare {
  double peak_gflops = 0;
  double share = 0;
};

/// Works and measures the peak by turns, before and after a quarter as long (at least 0.05 s each), for about `seconds` and five turns at
/// least: a machine whose speed changes does so for both. The medians over the turns; `gflop`: of products in one repetition, 10⁹
/// operations.
PeakShare share_of_peak(std::function<void()> const& work, double gflop, double seconds);

/// Memory that the system holds resident for this process, in bytes: the most since reset_resident_peak().
std::int64_t resident_peak();
/// Gives idle memory back and starts the peak again from what is resident now.
void reset_resident_peak();

/// "1 thread", "2 threads": how many the engine uses.
std::string threads_in_words();

inline double megabytes(std::int64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

}  // namespace heed
