#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/nearest.hpp"
#include "experiments/report/evaluation_folder.hpp"
#include "experiments/run/command.hpp"
#include "experiments/run/exchange/portable_model.hpp"
#include "experiments/run/session.hpp"

namespace heed {

namespace {

/// What the command line says of an export.
struct ExportOptions {
  std::filesystem::path run;  ///< a run's folder or its checkpoint, its name in the output folder, or a folder of another program's
  std::filesystem::path folder;
  Places places;
  std::string format;
  bool quiet = false;
};

ModelFormat const& format_of(std::string const& name) {
  if (auto const* const found = Registry<ModelFormat>::find(name)) return *found;
  auto const names = Registry<ModelFormat>::names();
  throw ConfigError("--format", name.empty() ? fmt::format("is needed: {}", fmt::join(names, ", "))
                                             : fmt::format("there is no format '{}'{} (there are {})", name, did_you_mean(name, names),
                                                           fmt::join(names, ", ")));
}

/// Writes a trained model for another program into a folder that is not there yet, which appears whole or not at all (make_folder). Throws
/// ConfigError for a folder that holds something, an unknown format, and a model that the format has no words for, naming its keys.
Exit export_model(ExportOptions const& options, std::ostream& out) {
  ModelFormat const& format = format_of(options.format);
  auto const path = find_run(options.run, options.places);
  TrainedModel const run = open_run(path);
  PortableModel const model{path.string(), run.settings.model, run.model->vocabulary(), run.parameters->all(), run.tokenizer};
  if (auto const why = format.unavailable(model))
    throw ConfigError(path.string(), fmt::format("cannot be written as {}: {}", format.name, *why));
  std::vector<std::string> remarks;
  make_folder(options.folder, [&](std::filesystem::path const& part) { remarks = format.write(model, part); });
  if (options.quiet) return Exit::done;
  out << fmt::format("{}: {}\n", options.folder.string(), format.help);
  for (std::string const& remark : remarks) out << remark << "\n";
  return Exit::done;
}

void declare_export(CLI::App& app, ExportOptions& options) {
  add_argument(app, "RUN", "a run's folder or name, its checkpoint, or a Hugging Face folder", options.run);
  add_argument(app, "DIR", "output folder; must not exist yet", options.folder);
  add_text(app, "--format", "NAME", fmt::format("{}", fmt::join(Registry<ModelFormat>::names(), ", ")), options.format);
}

Declared<Command> const declared_command{
    {.place = 9,
     .name = "export",
     .usage = "RUN --format NAME DIR",
     .help = "export a trained GPT to the format of another program",
     .footer = "example:\n  heed export runs/shakespeare --format huggingface shakespeare-gpt2",
     .add = with_options<ExportOptions>(declare_export, [](ExportOptions const& options) { return export_model(options, std::cout); })}};

}  // namespace

}  // namespace heed
