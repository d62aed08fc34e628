#include "experiments/commands/export.hpp"

#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/nearest.hpp"
#include "experiments/report/evaluation_folder.hpp"
#include "experiments/run/command.hpp"
#include "experiments/run/exchange/model_format.hpp"

namespace heed {

namespace {

ModelFormat const& format_of(std::string const& name) {
  if (auto const* const found = Registry<ModelFormat>::find(name)) return *found;
  auto const names = Registry<ModelFormat>::names();
  throw ConfigError("--format", name.empty() ? fmt::format("is needed: {}", fmt::join(names, ", "))
                                             : fmt::format("there is no format '{}'{} (there are {})", name, did_you_mean(name, names),
                                                           fmt::join(names, ", ")));
}

}  // namespace

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

namespace {

void declare_export(CLI::App& app, ExportOptions& options) {
  add_argument(app, "RUN", "a run's folder or name, its checkpoint, or a Hugging Face folder", options.run);
  add_argument(app, "DIR", "where it goes: a folder that is not there yet", options.folder);
  add_text(app, "--format", "NAME", fmt::format("{}", fmt::join(Registry<ModelFormat>::names(), ", ")), options.format);
}

Declared<Command> const declared_command{
    {.place = 8,
     .name = "export",
     .usage = "RUN --format NAME DIR",
     .help = "write a trained GPT for another program",
     .footer = "example:\n  heed export runs/shakespeare --format huggingface shakespeare-gpt2",
     .add = with_options<ExportOptions>(declare_export, [](ExportOptions const& options) { return export_model(options, std::cout); })}};

}  // namespace

}  // namespace heed
