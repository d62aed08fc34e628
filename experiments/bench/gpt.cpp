#include <algorithm>

#include "experiments/bench/bench.hpp"
#include "experiments/bench/gpt_subject.hpp"
#include "experiments/bench/measure.hpp"
#include "experiments/bench/model_row.hpp"
#include "experiments/config/nearest.hpp"

namespace heed {

namespace {

std::vector<GptSize> const gpt_sizes{
    {"tiny", 2, 2, 64, 32, 16, 32, 65},
    {"nano", 4, 4, 128, 64, 12, 64, 65},        // nanoGPT's configuration for a CPU
    {"small", 6, 6, 384, 256, 8, 256, 65},      // nanoGPT's configuration for Tiny Shakespeare, with a smaller batch
    {"gpt2", 12, 12, 768, 1024, 4, 64, 50257},  // 124M parameters; llm.c's example for a CPU
};
std::vector<std::string> const works{"train", "forward", "sample"};

std::vector<GptSize> chosen_sizes(std::string const& name) {
  if (name.empty()) return {gpt_sizes.begin(), gpt_sizes.begin() + 3};
  std::vector<std::string> names;
  for (auto const& size : gpt_sizes) names.push_back(size.name);
  expect_known("--size", name, names);
  return {*std::ranges::find(gpt_sizes, name, &GptSize::name)};
}

void bench_gpt(BenchOptions const& options, std::ostream& out) {
  auto const chosen = chosen_sizes(options.size);
  for (auto const& name : options.names) expect_known("bench gpt", name, works);
  write_model_heading("GPT", options, out);
  for (auto const& size : chosen) {
    for (auto const& what : works) {
      if (!options.names.empty() && std::ranges::find(options.names, what) == options.names.end()) continue;
      reset_resident_peak();
      GptSubject subject(size, options.recompute);
      measure_model({what, size.name, static_cast<double>(subject.tokens_of(what)), subject.work(what), options.recompute}, options, out);
    }
  }
}

Declared<BenchTopic> const gpt_benchmark{
    {"gpt",
     "GPTs of several sizes: a training step (forward, backward, clipping, AdamW), a forward pass, "
     "sampling: milliseconds, tokens per second, share of the machine's peak in matrix products, memory",
     bench_gpt}};

}  // namespace

}  // namespace heed
