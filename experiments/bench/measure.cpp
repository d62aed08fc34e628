#include "experiments/bench/measure.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include "autograd/graph.hpp"
#include "autograd/memory.hpp"
#include "autograd/operations.hpp"
#include "autograd/parallel.hpp"
#include "autograd/products.hpp"
#include "autograd/random.hpp"

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
  auto const flops_before = product_flops();
  timed();
  Measurement result;
  result.peak_bytes = memory_use().peak - before;
  result.product_gflop = static_cast<double>(product_flops() - flops_before) * 1e-9;

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

double peak_gflops() {
  NoGrad const quiet;
  Tensor const a = Tensor::uniform({1536, 1536}, Stream(1, "peak"), DType::float32, -1, 1);
  return measure([&] { matmul(a, a); }, 0.5).gflops();
}

std::string threads_in_words() { return threads() == 1 ? "1 thread" : fmt::format("{} threads", threads()); }

std::int64_t resident_peak() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  return use.ru_maxrss * 1024;
}

void reset_resident_peak() {
  release_idle_memory();
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;  // VmHWM starts again; where that is not allowed the peak is of the whole process
}

}  // namespace heed
