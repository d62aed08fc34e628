// A training step of a GPT (2 layers, 4 heads, width 128, 4 × 128 tokens, vocabulary 65), one size of which grows, tokens in one row; and
// the exponents of time and memory from each size to the next; one thread. Of every size, or of one:
//
//     cmake --build build/release --target bench_scaling && build/release/bench_scaling tokens

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "autograd/parallel.hpp"
#include "experiments/bench/bench.hpp"

namespace {

struct Axis {
  std::string name;
  std::vector<heed::Index> values;
  void (*grow)(heed::GptSize& size, heed::Index value);
  bool recompute = false;
};
Axis const axes[]{
    {"tokens", {64, 128, 256, 512, 1024, 2048, 4096, 8192}, [](auto& size, auto n) { size.context = size.tokens = n, size.batch = 1; }},
    {"width", {64, 128, 256, 512, 1024}, [](auto& size, auto n) { size.width = n; }},
    {"layers", {1, 2, 4, 8, 16}, [](auto& size, auto n) { size.layers = n; }},
    {"layers", {1, 2, 4, 8, 16}, [](auto& size, auto n) { size.layers = n; }, true},
    {"vocabulary", {64, 512, 4096, 32768}, [](auto& size, auto n) { size.vocabulary = n; }},
};

}  // namespace

int main(int count, char** words) {
  using namespace heed;
  set_threads(1);
  for (auto const& [name, values, grow, recompute] : axes) {
    if (count > 1 && name != words[1]) continue;
    fmt::print("{}{}:\n", name, recompute ? ", recomputed" : "");
    double before[3]{};  // logarithms of the last size, its time and its memory
    for (auto const value : values) {
      GptSize size{"", 2, 4, 128, 128, 4, 128, 65};
      grow(size, value);
      GptSubject subject(size, recompute);
      auto const m = measure_time([&] { subject.train(); }, 0.5);
      double const now[]{std::log(static_cast<double>(value)), std::log(m.median_ms), std::log(megabytes(m.peak_bytes))};
      fmt::print("{:>7} {:>10.2f} ms {:>8.1f} MB", value, m.median_ms, megabytes(m.peak_bytes));
      auto const exponent = [&](int of) { return (now[of] - before[of]) / (now[0] - before[0]); };
      if (value > values.front()) fmt::print(", exponents {:.2f} and {:.2f}", exponent(1), exponent(2));
      fmt::print("\n");
      std::ranges::copy(now, before);
    }
  }
}
