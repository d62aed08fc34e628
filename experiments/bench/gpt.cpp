#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/parallel.hpp"
#include "autograd/products.hpp"
#include "experiments/bench.hpp"
#include "experiments/bench/gpt_subject.hpp"
#include "experiments/bench/measure.hpp"

namespace heed {

namespace {

std::vector<GptSize> const sizes{
    {"tiny", 2, 2, 64, 32, 16, 32, 65},
    {"nano", 4, 4, 128, 64, 12, 64, 65},        // nanoGPT's configuration for a CPU
    {"small", 6, 6, 384, 256, 8, 256, 65},      // nanoGPT's configuration for Tiny Shakespeare, with a smaller batch
    {"gpt2", 12, 12, 768, 1024, 4, 64, 50257},  // 124M parameters; llm.c's example for a CPU
};
std::vector<std::string> const works{"train", "forward", "sample"};

std::vector<GptSize> chosen_sizes(std::string const& name) {
  if (name.empty()) return {sizes.begin(), sizes.begin() + 3};
  std::vector<std::string> names;
  for (auto const& size : sizes) names.push_back(size.name);
  expect_known("--size", name, names);
  return {*std::ranges::find(sizes, name, &GptSize::name)};
}

std::string factors() { return products().bfloat16 ? "bfloat16" : "float32"; }

}  // namespace

void bench_gpt(BenchOptions const& options, std::ostream& out) {
  auto const chosen = chosen_sizes(options.size);
  for (auto const& name : options.names) expect_known("bench gpt", name, works);
  if (!options.json) {
    out << fmt::format("GPT, factors of products {}, {}: median of {:g} s each\n\n", factors_in_words(), threads_in_words(),
                       options.seconds);
    out << fmt::format("{:<6} {:<8} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>9} {:>12}\n", "size", "what", "median ms", "min",
                       "max", "tokens/s", "GFLOP", "GFLOP/s", "of peak", "pool MB", "resident MB");
  }
  for (auto const& size : chosen) {
    for (auto const& what : works) {
      if (!options.names.empty() && std::ranges::find(options.names, what) == options.names.end()) continue;
      reset_resident_peak();
      GptSubject subject(size, options.recompute);
      auto const work = subject.work(what);
      auto const m = measure(work, options.seconds);
      auto const resident = resident_peak();
      double const tokens_per_second = 1e3 * static_cast<double>(subject.tokens_of(what)) / m.median_ms;
      auto const [peak, share] = share_of_peak(work, m.product_gflop, options.seconds);
      if (options.json) {
        out << nlohmann::ordered_json{{"what", what},
                                      {"size", size.name},
                                      {"threads", threads()},
                                      {"library", matrix_library()},
                                      {"precision", factors()},
                                      {"recompute", options.recompute},
                                      {"median_ms", m.median_ms},
                                      {"min_ms", m.min_ms},
                                      {"max_ms", m.max_ms},
                                      {"repetitions", m.repetitions},
                                      {"tokens_per_second", tokens_per_second},
                                      {"gflop", m.product_gflop},
                                      {"gflops", m.gflops()},
                                      {"peak_gflops", peak},
                                      {"share_of_peak", share},
                                      {"pool_mb", megabytes(m.peak_bytes)},
                                      {"peak_mb", megabytes(resident)}}
                   .dump()
            << '\n';
      } else {
        out << fmt::format("{:<6} {:<8} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.0f} {:>8.3f} {:>8.1f} {:>7.1f}% {:>9.1f} {:>12.1f}\n",
                           size.name, what, m.median_ms, m.min_ms, m.max_ms, tokens_per_second, m.product_gflop, m.gflops(), 100 * share,
                           megabytes(m.peak_bytes), megabytes(resident));
      }
      out.flush();
    }
  }
}

}  // namespace heed
