#include "experiments/commands/command_options.hpp"

#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/commands/list.hpp"
#include "experiments/commands/option_kinds.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/scalar.hpp"

namespace heed {

void add_everywhere(CLI::App& app, CommandLine& line) {
  auto const group = [](CLI::Option* option) { option->group("everywhere"); };
  app.set_help_flag();
  group(app.set_help_flag("-h,--help", "this page"));
  group(add_text(app, "--output", "DIR", "where runs are kept (default: runs)",
                 [&](std::string const& folder) { line.run.places.output = folder; }));
  group(add_text(app, "--data", "DIR", "where data are looked for (default: $HEED_DATA, then a cache folder)",
                 [&](std::string const& folder) {
                   std::error_code unreadable;
                   if (!std::filesystem::is_directory(folder, unreadable))
                     throw ConfigError("--data", fmt::format("there is no folder '{}'", folder));
                   line.run.places.data = folder;
                 }));
  group(add_number<std::int64_t>(app, "--threads", line.threads, 1, 1024,
                                 "threads to compute with (default: all cores; of an ablation's trials: 1)"));
  group(app.add_flag("--quiet", line.run.quiet, "no progress and no results on the terminal"));
}

namespace {

void add_config(CLI::App& command, CommandLine& line) {
  command
      .add_option_function<std::string>(
          "CONFIG", [&](std::string const& file) { line.run.config = file; }, "a YAML file")
      ->required()
      ->type_name("");
  command.add_option("overrides", line.run.overrides, "replaces what the file says, e.g. train.steps=500")->type_name("key.path=value");
}

void add_workers(CLI::App& command, CommandLine& line) {
  add_text(command, "--jobs", "N", "trials of an ablation, or blocks of a study, at a time (default: cores / threads)",
           [&](std::string const& text) {
             auto const count = parse_integer(text);
             if (!count || *count < 1 || *count > 1024)
               throw ConfigError("--jobs", fmt::format("wants an integer ≥ 1 and ≤ 1024, but found '{}'", text));
             line.run.jobs.emplace(*count);
           });
}

void read_shard(std::string const& text, RunOptions& options) {
  auto const slash = text.find('/');
  auto const shard = parse_integer(text.substr(0, slash));
  std::optional<std::int64_t> shards;
  if (slash != text.npos) shards = parse_integer(text.substr(slash + 1));
  if (!shard || !shards || *shard < 1 || *shard > *shards)
    throw ConfigError("--shard", fmt::format("wants I/N with 1 ≤ I ≤ N, like 1/3, but found '{}'", text));
  options.shard = *shard;
  options.shards = *shards;
}

void add_run(CLI::App& app, CommandLine& line) {
  auto& run = add_command(app, line, "run", "train what a file describes, or go on where it was cut off");
  add_config(run, line);
  run.add_flag("--fresh", line.run.fresh, "put an old run of this name aside and begin anew");
  run.add_flag("--resume")->description("go on from the last checkpoint (the default)")->excludes("--fresh");
  add_workers(run, line);
  add_text(run, "--shard", "I/N",
           "of an ablation, begin with the Ith of N parts of its trials (processes that run one file share them all, with or without it)",
           [&](std::string const& text) { read_shard(text, line.run); });
  run.footer(
      "The run is left in DIR/NAME: config.yaml, metrics.jsonl, metrics.csv, checkpoint.safetensors, summary.json.\n"
      "Ctrl-C finishes the step and saves; the same command goes on from there.\n\n"
      "examples:\n"
      "  heed run configs/gpt/grammar.yaml\n"
      "  heed run configs/gpt/shakespeare.yaml seed=2 name=shakespeare-2\n"
      "  heed run configs/gpt/grammar.yaml 'model.attention={score: scaled_dot, scale: inverse}' name=inverse");
}

void add_plan(CLI::App& app, CommandLine& line) {
  auto& plan =
      add_command(app, line, "plan",
                  "an ablation's arms, runs, expected time (from a few steps of each arm), and what its seeds can show; writes nothing");
  add_config(plan, line);
  add_workers(plan, line);
  plan.footer("example:\n  heed plan configs/ablations/attention.yaml seeds=8");
}

void add_check(CLI::App& app, CommandLine& line) {
  auto& check = add_command(app, line, "check", "validate a file and print it with everything it leaves to defaults; train nothing");
  add_config(check, line);
  check.footer("example:\n  heed check configs/gpt/grammar.yaml model.layers=6");
}

void add_report(CLI::App& app, CommandLine& line) {
  auto& report = add_command(app, line, "report", "write the report of finished ablations and runs again, from what is on disk");
  report
      .add_option_function<std::vector<std::string>>(
          "DIR", [&](std::vector<std::string> const& folders) { line.report.folders.assign(folders.begin(), folders.end()); },
          "folders or names of runs, studies and ablations, or a folder that holds them")
      ->required()
      ->type_name("");
  report.footer(
      "Each folder gets its report.html and figures/*.svg and *.pdf; several of them one report.html more, in the folder that holds them "
      "or the output folder.\n\n"
      "example:\n  heed report runs/attention runs/positions");
}

void add_bench(CLI::App& app, CommandLine& line) {
  auto& bench = add_command(app, line, "bench", "measure how long things take on this machine, and how much memory");
  bench.add_option("TOPIC", line.bench.what, fmt::format("{} (default: all)", fmt::join(Registry<BenchTopic>::names(), ", ")))
      ->type_name("");
  bench
      .add_option("NAME", line.bench.names,
                  "only these. attention: a score, align, read or position; gpt: train, forward, sample; ops, scaling: names of lines; "
                  "training: CONFIG [key.path=value …], which it needs")
      ->type_name("");
  add_text(bench, "--size", "SIZE", "gpt: tiny, nano, small, gpt2 (default: the first three); attention: BxHxTxD (default: 12x4x256x64)",
           [&](std::string const& size) { line.bench.size = size; });
  bench.add_option("--precision", line.bench.precision, "of the factors of matrix products: float32 (default), bfloat16")
      ->type_name("TYPE");
  bench.add_flag("--recompute", line.bench.recompute, "gpt, training: run each block again for its gradient");
  bench.add_flag("--causal", line.bench.causal, "attention: a query sees the keys up to its own place");
  add_number<double>(bench, "--dropout", line.bench.dropout, 0, 0.99, "attention: the part of the weights that is dropped");
  add_number<double>(bench, "--seconds", line.bench.seconds, 0, 3600, "to repeat each measurement for (default: 0.5)");
  bench.add_flag("--json", line.bench.json, "one JSON object a line");
  bench.footer(
      "examples:\n"
      "  heed bench gpt --size nano --threads 1\n"
      "  heed bench gpt train --size small --threads 2 --precision bfloat16 --json\n"
      "  heed bench training configs/systems/reverse.yaml model.width=256\n"
      "  heed bench ops matmul gelu --threads 1\n"
      "  heed bench scaling tokens\n"
      "  heed bench attention --threads 1\n"
      "  heed bench attention local_m local_p --size 1x4x2048x64 --causal");
}

void add_compare(CLI::App& app, CommandLine& line) {
  auto& compare = add_command(app, line, "compare", "runs beside each other: the keys that differ, curves, final figures");
  compare.add_option("RUN", line.runs, "folders of runs and ablations, or their names in the output folder")
      ->required()
      ->expected(1, 1000)
      ->type_name("");
  compare.footer(
      "An ablation stands for its arms, each with its first seed.\n\n"
      "examples:\n  heed compare runs/shakespeare runs/shakespeare-2\n  heed compare runs/positions");
}

void add_clean(CLI::App& app, CommandLine& line) {
  auto& clean = add_command(app, line, "clean", "put the trials of earlier versions of an ablation's file aside");
  clean.add_option("ABLATION", line.runs, "ablations' folders, or their names in the output folder")
      ->required()
      ->expected(1, 1000)
      ->type_name("");
  clean.footer("They go into one folder beside the ablation's, NAME.old-1.\n\nexample:\n  heed clean runs/positions");
}

void add_schema(CLI::App& app, CommandLine& line) {
  add_command(app, line, "schema", "a JSON Schema of configuration files, for editors that complete and check YAML")
      .footer("example:\n  heed schema > heed.schema.json     # then, first in a file: # yaml-language-server: $schema=heed.schema.json");
}

void add_list(CLI::App& app, CommandLine& line) {
  auto& list = add_command(app, line, "list", "what there is: attention, positions, models, data, metrics, keys, …");
  list.add_option("TOPIC", line.topic, fmt::format("{}", fmt::join(list_topics(), ", ")))->type_name("");
  list.add_option("NAME", line.name, "all there is to say of one of them: gpt, additive, copy, …")->type_name("");
  list.add_flag("--markdown", line.markdown, "attention, ablation: the tables as the README files have them");
  list.footer("examples:\n  heed list attention\n  heed list models gpt\n  heed list keys | less");
}

}  // namespace

void add_commands(CLI::App& app, CommandLine& line) {
  add_run(app, line);
  add_plan(app, line);
  add_check(app, line);
  add_report(app, line);
  add_model_commands(app, line);
  add_bench(app, line);
  add_compare(app, line);
  add_clean(app, line);
  add_schema(app, line);
  add_list(app, line);
}

}  // namespace heed
