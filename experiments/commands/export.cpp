#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/ablation/results.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/exchange/formats.hpp"
#include "experiments/program/command.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"
#include "experiments/report/evaluation_folder.hpp"

namespace heed {

namespace {

struct ExportOptions {
  std::vector<fs::path> arguments;  ///< folders of runs and ablations, or their names in the output folder; the last one is the target
  Folders folders;
  std::string format;
  bool quiet = false;

  fs::path const& target() const { return arguments.back(); }
};

/// The formats of models and of results with their help, sorted by name.
TableRows formats() {
  TableRows all;
  for (auto const& format : Registry<ModelFormat>::all()) all.push_back({format.name, "of runs: " + format.help});
  for (auto const& format : Registry<ResultFormat>::all())
    all.push_back({format.name, fmt::format("of {}s: {}", fmt::join(format.of, "s and "), format.help)});
  std::ranges::sort(all);
  return all;
}

/// Throws ConfigError, which names the formats for this folder, if the format is for another kind of folder.
void check_kind(fs::path const& folder, std::string const& format, std::vector<std::string> const& of) {
  std::string const kind(kind_of_results(folder));
  if (std::ranges::find(of, kind) != of.end()) return;
  std::vector<std::string> fitting;
  for (auto const& each : Registry<ResultFormat>::all())
    if (std::ranges::find(each.of, kind) != each.of.end()) fitting.push_back(each.name);
  if (kind != "ablation")
    for (auto const& each : Registry<ModelFormat>::names()) fitting.push_back(each);
  std::ranges::sort(fitting);
  auto const what = kind.empty() ? "neither a run nor an ablation with results" : kind == "run" ? "a run" : "an ablation";
  throw ConfigError(folder.string(),
                    fmt::format("is {}; {} is for {}s; its formats: {}", what, format, fmt::join(of, "s and "), fmt::join(fitting, ", ")));
}

/// Writes a trained model for another program into a folder, which appears complete or not at all (make_folder). Throws ConfigError if the
/// folder is not empty, and for a model that the format cannot represent, naming its keys. Returns remarks for the user.
std::vector<std::string> export_model(ModelFormat const& format, fs::path const& path, fs::path const& target) {
  if (kind_of_results(path) == "ablation") check_kind(path, format.name, {"run"});
  TrainedModel const run = open_run(path);
  PortableModel const model{path.string(), run.settings.model, run.model->vocabulary(), run.parameters->all(), run.tokenizer};
  if (auto const why = format.unavailable(model))
    throw ConfigError(path.string(), fmt::format("cannot be written as {}: {}", format.name, *why));
  std::vector<std::string> remarks;
  make_folder(target, [&](fs::path const& part) { remarks = format.write(model, part); });
  return remarks;
}

/// Writes the results of runs and ablations into a file, which is replaced as a whole, or into a folder as export_model() does. First
/// updates an ablation's tables if they lack finished trials. Throws ConfigError for a folder of another kind.
void export_results(ResultFormat const& format, std::vector<fs::path> const& folders, ExportOptions const& options) {
  for (auto const& folder : folders) {
    check_kind(folder, format.name, format.of);
    renew_results(folder, options.folders);
  }
  if (format.folder)
    make_folder(options.target(), [&](fs::path const& part) { format.write(folders, part); });
  else
    format.write(folders, options.target());
}

Exit run_export(ExportOptions const& options) {
  auto const* const of_model = Registry<ModelFormat>::find(options.format);
  auto const* const of_results = Registry<ResultFormat>::find(options.format);
  auto const names = mapped(formats(), [](auto const& row) { return row.front(); });
  if (options.format.empty()) throw ConfigError("--format", fmt::format("is needed: {}", fmt::join(names, ", ")));
  expect_known("--format", options.format, names, "format");
  bool const several = of_results != nullptr && of_results->several;
  if (options.arguments.size() > 2 && !several)
    throw ConfigError(options.arguments[1].string(),
                      fmt::format("is one folder too many: {} is a format of one, and a target", options.format));
  std::vector<fs::path> folders;
  for (auto const& each : options.arguments)
    if (&each != &options.target()) folders.push_back(find_run(each, options.folders));
  std::vector<std::string> remarks;
  if (of_model != nullptr)
    remarks = export_model(*of_model, folders.front(), options.target());
  else
    export_results(*of_results, folders, options);
  if (options.quiet) return Exit::done;
  std::cout << fmt::format("{}: {}\n", options.target().string(), of_model != nullptr ? of_model->help : of_results->help);
  for (std::string const& remark : remarks) std::cout << remark << "\n";
  return Exit::done;
}

void declare_export(CLI::App& app, ExportOptions& options) {
  add_arguments(app, "RUN",
                "runs or ablations: folders or names, a checkpoint, or a Hugging Face folder; last: the target, a new folder or a file",
                options.arguments);
  auto help = "one of:\n" + table(formats(), 4);
  while (help.ends_with('\n')) help.pop_back();
  add_text(app, "--format", "NAME", help, options.format);
}

void check_export(ExportOptions& options, GlobalOptions const&) {
  if (options.arguments.size() < 2) throw ConfigError("export", "the target is required (see heed export --help)");
}

Declared<Command> const export_command{{.order = 10,
                                        .name = "export",
                                        .usage = "RUN … --format NAME TARGET",
                                        .help = "export a trained model, or results, to the format of another program",
                                        .footer = "examples:\n  heed export runs/shakespeare --format huggingface shakespeare-gpt2\n"
                                                  "  heed export runs/attention --format latex attention.tex\n"
                                                  "  heed export runs/attention runs/grammar --format tensorboard events",
                                        .add = with_options<ExportOptions>(declare_export, run_export, check_export)}};

}  // namespace

}  // namespace heed
