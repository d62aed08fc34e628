#include <fmt/format.h>

#include "autograd/parallel.hpp"
#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/plan.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/program/command.hpp"
#include "experiments/report/report.hpp"
#include "experiments/train/ranks.hpp"
#include "experiments/train/session.hpp"
#include "experiments/train/train.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

namespace {

/// A comment line per layer: its attention, parameters, what decoding keeps, and operations of a forward pass over a context.
std::string layers_in_words(StackSettings const& settings, Parameters const& parameters) {
  std::string lines;
  auto const bytes = to_double(parameters.dtype() == DType::float32 ? 4 : 8);
  for (Index i = 0; i < settings.layers; ++i) {
    StackSettings const layer = settings.of_layer(i);
    double const context = to_double(layer.context), flops = context * layer.layer_flops(layer.causal ? context / 2 : context);
    std::string const named = settings.pattern.name_of(i, settings.layers);
    std::string const name = !named.empty() ? named : layer.attention.is_linear() ? layer.attention.linear.name : layer.attention.score;
    auto const kept = static_cast<Index>(bytes * to_double(layer.cached_numbers()));
    std::string const memory = layer.attention.is_linear() ? fmt::format("a state of {} bytes", kept)
                               : layer.sees > 0            ? fmt::format("{} bytes a token, of the last {}", kept, layer.sees)
                                                           : fmt::format("{} bytes a token", kept);
    std::string const block = fmt::format("blocks.{}.", i);
    Index elements = 0;  // of encoder and decoder together
    for (auto const& [parameter, value] : parameters.all())
      if (parameter.starts_with(block) || parameter.find("." + block) != parameter.npos) elements += value.elements();
    lines += fmt::format("# layer {}: {}, position {}, {} parameters, {}, {:.3g} GFLOP\n", i, name, layer.position.kind, elements, memory,
                         1e-9 * flops);
  }
  return lines;
}

}  // namespace

Exit run(RunOptions const& options) {
  Document const document = load(options.config);
  if (is_ablation(document)) return run_ablation(load_ablation(options), options);
  if (auto const* const kind = file_kind_of(document)) return kind->run(options);
  if (options.threads || started().size > 0) set_threads(static_cast<int>(options.threads.value_or(1)));
  return with_ranks([&] {
    LoadedExperiment experiment = load_experiment(options.config, options.overrides, options.folders);
    Exit const exit = train(experiment, options.quiet, options.fresh);
    auto const folder = folder_of(experiment);
    if (exit != Exit::done || !ranks().first() || has_report(folder)) return exit;
    if (auto const alone = FolderLock::attempt(folder)) {  // without it, another process is writing the page
      for (auto const& each : {folder, folder / "figures"}) remove_parts(each);
      write_report(folder, options.quiet);
    }
    return exit;
  });
}

Exit check(RunOptions const& options) {
  if (options.threads) set_threads(static_cast<int>(*options.threads));
  Document const document = load(options.config);
  if (is_ablation(document)) return check_ablation(load_ablation(options), options.quiet);
  if (auto const* const kind = file_kind_of(document)) return kind->check(options);
  LoadedExperiment experiment = load_experiment(options.config, options.overrides, options.folders);
  Trainer const trainer(experiment, true);
  if (options.quiet) return Exit::done;
  if (auto const remark = trainer.remark()) fmt::print(stderr, "{}\n", *remark);
  fmt::print("{}", emit(experiment.settings));
  fmt::print("# {} parameters, vocabulary {}, {}\n", trainer.parameters().elements(), trainer.model().vocabulary(),
             trainer.tokens_in_words());
  if (auto const* const stack = dynamic_cast<StackSettings const*>(experiment.settings.model.settings.get()))
    fmt::print("{}", layers_in_words(*stack, trainer.parameters()));
  return Exit::done;
}

namespace {

void declare_config(CLI::App& app, RunOptions& options) {
  add_argument(app, "CONFIG", "a YAML file", options.config);
  add_arguments(app, "overrides", "changes a key of the file, e.g. train.steps=500", options.overrides, Presence::optional,
                "key.path=value");
}

void add_workers(CLI::App& app, RunOptions& options) {
  add_number<Index>(app, "--jobs", options.jobs, 1, 1024,
                    "trials of an ablation, or blocks of a study, in parallel (default: cores / threads)");
}

void declare_run(CLI::App& app, RunOptions& options) {
  declare_config(app, options);
  add_flag(app, "--fresh", options.fresh, "move an old run of this name aside and begin anew");
  add_default_flag(app, "--resume", "--fresh", "resume from the last checkpoint (the default)");
  add_workers(app, options);
  add_text(app, "--shard", "I/N", "of an ablation: " + ablation_help("shard"), options.shard);
}

void declare_plan(CLI::App& app, RunOptions& options) {
  declare_config(app, options);
  add_workers(app, options);
  add_flag(app, "--slurm", options.slurm, "print an sbatch script, with time and memory as estimated");
  add_number<Index>(app, "--tasks", options.tasks, 1, 100'000,
                    "processes of that script, which share the trials (default: one for each trial, at most 1000)");
  add_number<Index>(app, "--shards", options.shards, 1, 100'000,
                    "or shards of the trials, a process for each, for machines that share no folder");
}

void declare_watch(CLI::App& app, WatchOptions& options) {
  add_argument(app, "FOLDER", "an ablation's folder, or its name in the output folder", options.folder);
  add_flag(app, "--once", options.once, "print the state once");
  add_number<Index>(app, "--every", options.every, 1, 3600, "seconds between looks (default: 5)");
}

/// Throws ConfigError if an override comes before the file: `heed run train.steps=5 good.yaml`.
void check_config_first(char const* command, RunOptions const& options) {
  std::string const config = options.config.string();
  if (config.find('=') == config.npos || is_there(options.config)) return;
  auto const file = std::ranges::find_if(options.overrides, [](std::string const& each) { return each.find('=') == each.npos; });
  throw ConfigError(config, fmt::format("the file comes first, then its changes: heed {} {} {}", command,
                                        file != options.overrides.end() ? *file : "FILE", config));
}

Declared<Command> const run_command{
    {.order = 1,
     .name = "run",
     .usage = "CONFIG [key.path=value …]",
     .help = "run or resume what a file describes: a run, an ablation or a study",
     .footer = "Results are in DIR/NAME: config.yaml, metrics.jsonl, checkpoint.safetensors, summary.json.\nCtrl-C finishes "
               "the step and saves; the same command resumes.\n\nexamples:\n  heed run configs/gpt/grammar.yaml\n  heed run "
               "configs/gpt/shakespeare.yaml seed=2 name=shakespeare-2\n  heed run configs/gpt/grammar.yaml 'model.attention={score: "
               "scaled_dot, scale: inverse}' name=inverse",
     .add = with_options<RunOptions>(declare_run, run, [](RunOptions& options, GlobalOptions const&) {
       check_config_first("run", options);
       if (!options.shard.empty()) options.overrides.push_back("shard=" + options.shard);
     })}};
Declared<Command> const plan_command{
    {.order = 2,
     .name = "plan",
     .usage = "CONFIG [key.path=value …]",
     .help = "print an ablation's arms, runs, expected time (from a few steps of each arm) and statistical power; write nothing",
     .footer = "examples:\n  heed plan configs/ablations/attention.yaml seeds=8\n  heed plan configs/ablations/attention.yaml --slurm > "
               "attention.sbatch",
     .add = with_options<RunOptions>(declare_plan, plan_ablation,
                                     [](RunOptions& options, GlobalOptions const&) { check_config_first("plan", options); })}};
Declared<Command> const check_command{
    {.order = 3,
     .name = "check",
     .usage = "CONFIG [key.path=value …]",
     .help = "validate a file and print it with all defaults; train nothing",
     .footer = "example:\n  heed check configs/gpt/grammar.yaml model.layers=6",
     .add = with_options<RunOptions>(declare_config, check,
                                     [](RunOptions& options, GlobalOptions const&) { check_config_first("check", options); })}};
Declared<Command> const watch_command{{.order = 4,
                                       .name = "watch",
                                       .usage = "FOLDER",
                                       .help = "show how far an ablation is that runs elsewhere, from its files alone",
                                       .footer = "example:\n  heed watch runs/attention",
                                       .add = with_options<WatchOptions>(declare_watch, watch_ablation)}};

}  // namespace

}  // namespace heed
