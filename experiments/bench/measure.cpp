#include <algorithm>
#include <chrono>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "autograd/blas/products.hpp"
#include "autograd/graph.hpp"
#include "autograd/memory.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/parallel.hpp"
#include "autograd/random.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/metric/statistics.hpp"
#include "experiments/program/system.hpp"
#if defined(__linux__)
#include <malloc.h>
#endif

namespace heed {

namespace {

double seconds_of(std::function<void()> const& work) {
  auto const start = std::chrono::steady_clock::now();
  work();
  return seconds_since(start);
}

/// 10⁹ operations, and the seconds that they took.
struct Run {
  double gflop = 0, seconds = 0;
  double gflops() const { return gflop / seconds; }
};

/// Repeats for at least `min_seconds` seconds, after once that finds the caches as other work left them; `gflop`: of one repetition.
Run repeated(std::function<void()> const& work, double gflop, double min_seconds) {
  work();
  Run run;
  for (; run.seconds < min_seconds; run.gflop += gflop) run.seconds += seconds_of(work);
  return run;
}

}  // namespace

Measurement measure_time(std::function<void()> const& work, double seconds) {
  reset_memory_peak();
  auto const before = memory_use().live;
  auto const flops_before = product_flops();
  work();
  Measurement result;
  result.peak_bytes = memory_use().peak - before;
  result.product_gflop = static_cast<double>(product_flops() - flops_before) * 1e-9;

  std::vector<double> times;
  for (double total = 0; times.size() < 3 || total < seconds; total += times.back()) times.push_back(seconds_of(work));
  result.median_ms = 1e3 * median(times);
  result.min_ms = 1e3 * std::ranges::min(times);
  result.max_ms = 1e3 * std::ranges::max(times);
  result.repetitions = static_cast<int>(times.size());
  return result;
}

nlohmann::ordered_json times_of(Measurement const& m) {
  return {{"median_ms", m.median_ms}, {"min_ms", m.min_ms}, {"max_ms", m.max_ms}, {"repetitions", m.repetitions}};
}

PeakShare share_of_peak(std::function<void()> const& work, double gflop, double seconds) {
  constexpr double min_seconds = 0.05;
  std::size_t const rounds = seconds > 0 ? 5 : 1;  // without time for it, one look
  constexpr Index n = 1536;
  Tensor const factor = Tensor::uniform({n, n}, Stream(1, "peak"), DType::float32, -1, 1);
  auto const product = [&factor] {
    NoGrad const quiet;
    matmul(factor, factor);
  };
  double const beside = std::max(min_seconds, seconds_of(work) / 4);
  auto const products = [&] { return repeated(product, 2e-9 * n * n * n, beside); };
  std::vector<double> peaks, shares;
  for (double total = 0; shares.size() < rounds || total < seconds;) {
    Run const before = products(), own = repeated(work, gflop, min_seconds), after = products();
    peaks.push_back((before.gflop + after.gflop) / (before.seconds + after.seconds));
    shares.push_back(own.gflops() / peaks.back());
    total += before.seconds + own.seconds + after.seconds;
  }
  return {median(peaks), median(shares)};
}

std::string threads_in_words() { return threads() == 1 ? "1 thread" : fmt::format("{} threads", threads()); }

Index resident_peak() {
#if defined(__linux__)
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
#endif
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
#if defined(__APPLE__)
  return use.ru_maxrss;  // bytes; others count kilobytes
#else
  return use.ru_maxrss * 1024;
#endif
}

void reset_resident_peak() {
  release_idle_memory();
#if defined(__linux__)
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;  // VmHWM starts again; where that is not allowed the peak is of the whole process
#endif
}

}  // namespace heed
