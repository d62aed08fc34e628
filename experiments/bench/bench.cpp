#include "experiments/bench/bench.hpp"

#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/blas/products.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/program/command.hpp"

namespace heed {

Exit bench(BenchOptions const& options, std::ostream& out) {
  if (!options.what.empty()) expect_known("bench", options.what, Registry<BenchTopic>::names());
  expect_known("--precision", options.precision, {"float32", "bfloat16"});
  WithProducts const chosen({.bfloat16 = options.precision == "bfloat16"});
  for (auto const& topic : Registry<BenchTopic>::all()) {
    if (options.what.empty() || options.what == topic.name) topic.run(options, out);
  }
  return Exit::done;
}

namespace {

void declare_bench(CLI::App& app, BenchOptions& options) {
  add_argument(app, "TOPIC", fmt::format("{} (default: all)", fmt::join(Registry<BenchTopic>::names(), ", ")), options.what,
               Presence::optional);
  add_arguments(app, "NAME",
                "measure only these. attention: a score, align, read or position; gpt: train, forward, sample; training: CONFIG "
                "[key.path=value …] (required)",
                options.names, Presence::optional);
  add_text(app, "--size", "SIZE", "gpt: tiny, nano, small, gpt2 (default: the first three); attention: BxHxTxD (default: 12x4x256x64)",
           options.size);
  add_text(app, "--precision", "TYPE", "type of the factors of matrix products: float32 (default), bfloat16", options.precision);
  add_flag(app, "--recompute", options.recompute, "gpt, training: recompute each block in the backward pass");
  add_flag(app, "--causal", options.causal, "attention: causal");
  add_number<Index>(app, "--sees", options.sees, 0, 1'000'000, "attention: a sliding window of the last n tokens (default: 0, all)");
  add_number<double>(app, "--dropout", options.dropout, 0, 0.99, "attention: dropout rate of the weights");
  add_number<double>(app, "--seconds", options.seconds, 0, 3600, "duration of each measurement in seconds (default: 0.5)");
  add_flag(app, "--json", options.json, "print one JSON object per line");
}

Declared<ListTopic> const benchmarks_topic{
    {16, "benchmarks", "benchmarks of `heed bench`", [] {
       return table(mapped(Registry<BenchTopic>::all(), [](BenchTopic const& topic) { return std::vector{topic.name, topic.measures}; }));
     }}};
Declared<Command> const bench_command{
    {.order = 13,
     .name = "bench",
     .usage = "[TOPIC [NAME …]]",
     .help = "measure time and memory on this machine",
     .footer = "examples:\n"
               "  heed bench gpt --size nano --threads 1\n"
               "  heed bench gpt train --size small --threads 2 --precision bfloat16 --json\n"
               "  heed bench training configs/systems/reverse.yaml model.width=256\n"
               "  heed bench attention --threads 1\n"
               "  heed bench attention local_m local_p --size 1x4x2048x64 --causal",
     .add = with_options<BenchOptions>(declare_bench, [](BenchOptions const& options) { return bench(options, std::cout); })}};

}  // namespace

}  // namespace heed
