#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "autograd/index.hpp"
#include "experiments/bench/bench.hpp"

namespace heed {

/// Result of repeating a piece of work.
struct Measurement {
  double median_ms = 0, min_ms = 0, max_ms = 0;  ///< wall time of one repetition
  Index peak_bytes = 0;                          ///< peak of the engine's pool during one repetition, beyond what it held before
  double product_gflop = 0;                      ///< operations of the matrix products executed in one repetition, in 10⁹
  int repetitions = 0;

  /// 10⁹ operations of matrix products per second, from the median time.
  double gflops() const { return 1e3 * product_gflop / median_ms; }
};

/// Repeats `work` for about `seconds`, at least three times, after one warm-up. Throws what `work` throws.
Measurement measure_time(std::function<void()> const& work, double seconds);
/// Of a line of JSON: median_ms, min_ms, max_ms, repetitions.
nlohmann::ordered_json times_of(Measurement const& measured);

/// A piece of work's throughput relative to the machine's peak in matrix products with the current products(): that of products
/// [1536, 1536]², threaded like every product.
struct PeakShare {
  double peak_gflops = 0;  ///< 10⁹ operations per second
  double share = 0;
};

/// Measures the work and the peak alternately, the peak a quarter as long before and after (at least 0.05 s each), for about `seconds` and
/// at least five rounds, so that changes of the machine's speed affect both. Medians over the rounds; `gflop`: 10⁹ operations of products
/// in one repetition.
PeakShare share_of_peak(std::function<void()> const& work, double gflop, double seconds);

/// The process's peak resident memory since reset_resident_peak(), in bytes.
Index resident_peak();
/// Returns idle memory to the system and resets the peak to what is resident now.
void reset_resident_peak();

/// The number of the engine's threads: "1 thread", "2 threads".
std::string threads_in_words();

inline double megabytes(Index bytes) { return static_cast<double>(bytes) * 1e-6; }

/// A model's work, and the number of tokens in it.
struct ModelWork {
  std::string what, size;
  double tokens;
  std::function<void()> run;
  bool recompute = false;
  std::optional<Index> critical_path = {};  ///< sequential operations of the loss
};

/// Writes the heading of a table of models; nothing for JSON.
void write_model_heading(std::string const& title, BenchOptions const& options, std::ostream& out);

/// Repeats the work and writes a row: milliseconds, tokens per second, operations of products and their share of the machine's peak, memory
/// (resident: since reset_resident_peak()).
void measure_model(ModelWork const& work, BenchOptions const& options, std::ostream& out);

}  // namespace heed
