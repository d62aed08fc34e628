#include "experiments/report/report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/results.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/program/command.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace {

fs::path results_at(fs::path const& folder, Folders const& folders) {
  for (auto const& each : {folder, folders.output / folder})
    if (is_folder(each)) return each;
  throw ConfigError("report", fmt::format("there is no folder '{}', nor in {}", folder.string(), folders.output.string()));
}

/// Whether this is the folder of a single run, study or ablation, finished or not.
bool is_one(fs::path const& folder) {
  return is_file(folder / "summary.json") || is_file(folder / "config.yaml") || is_file(folder / "ablation.yaml");
}

/// The folder itself if it is one of a run, study or ablation; else those inside it that have results, by name. Throws FileError for none.
std::vector<fs::path> results_in(fs::path const& folder, bool quiet) {
  if (is_one(folder)) return {folder};
  std::vector<fs::path> results, unfinished;
  for (auto const& entry : fs::directory_iterator(folder)) {
    bool const put_aside = entry.path().filename().string().find(".old-") != std::string::npos;
    if (!entry.is_directory() || !is_one(entry.path()) || put_aside) continue;
    // An ablation can be reported while it runs.
    bool const has_results = is_file(entry.path() / "summary.json") || is_file(entry.path() / "ablation.yaml");
    (has_results ? results : unfinished).push_back(entry.path());
  }
  std::ranges::sort(results);
  std::ranges::sort(unfinished);
  auto const names = fmt::format("{}", fmt::join(mapped(unfinished, [](auto const& each) { return each.filename().string(); }), ", "));
  if (results.empty())
    throw FileError(
        fmt::format("{}: there are no results in it: no summary.json, which runs, studies and ablations write, nor folders with one{}",
                    folder.string(), names.empty() ? "" : "; not finished: " + names + " (heed run goes on with them)"));
  if (!names.empty() && !quiet) fmt::print(stderr, "heed: left out, because they have not finished: {}\n", names);
  return results;
}

void declare_report(CLI::App& app, ReportOptions& options) {
  add_arguments(app, "DIR", "folders or names of runs, studies and ablations, or a folder that contains them", options.paths);
}

Declared<Command> const report_command{
    {.order = 5,
     .name = "report",
     .usage = "DIR …",
     .help = "rewrite the reports of finished runs, ablations and studies from their folders",
     .footer = "Writes report.html, figures/*.svg and *.pdf in each folder and, for several folders, a joint report.html in the folder "
               "that contains\nthem or in the output folder.\n\nexample:\n  heed report runs/attention runs/positions",
     .add = with_options<ReportOptions>(declare_report, report)}};

}  // namespace

Exit report(ReportOptions const& options) {
  std::vector<fs::path> folders;
  fs::path together = options.folders.output;
  for (auto const& each : options.paths) {
    auto const folder = results_at(each, options.folders);
    auto const results = results_in(folder, options.quiet);
    if (options.paths.size() == 1) together = folder;
    folders.insert(folders.end(), results.begin(), results.end());
  }
  folders = with_shards_joined(folders, options.folders, options.quiet);
  for (auto const& folder : folders) {
    renew_results(folder, options.folders);
    write_report(folder, options.quiet);
  }
  if (folders.size() > 1) write_report(folders, together / "report.html", options.quiet);
  return Exit::done;
}

}  // namespace heed
