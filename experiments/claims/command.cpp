// heed claims: what papers say, with a verdict of this machine.

#include "experiments/program/command.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>

#include <fmt/format.h>

#include "experiments/ablation/ablation.hpp"
#include "experiments/claims/claims.hpp"
#include "experiments/config/build_info.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/data/files.hpp"
#include "experiments/program/file_kind.hpp"
#include "experiments/program/system.hpp"

namespace heed {

namespace {

struct ClaimsOptions : RunOptions {
  std::vector<std::string> names;
  fs::path claims;
  bool run = false, write = false;
};

void declare_claims(CLI::App& app, ClaimsOptions& options) {
  add_arguments(app, "NAME", "claims by the names of their files (default: all)", options.names, Presence::optional, "");
  add_text(app, "--claims", "FOLDER", "folder of the claims' files (default: configs/claims)", options.claims);
  add_flag(app, "--run", options.run, "train what is not there yet");
  add_text(app, "--within", "TIME", "with --run: 90s, 30m, 2h: the claims that heed plan expects to fit, cheapest first",
           [&](std::string const& text) { options.within = seconds_in("--within", text); });
  add_number<Index>(app, "--jobs", options.jobs, 1, 1024, "trials in parallel (default: cores / threads)");
  add_flag(app, "--write", options.write, "write README.md and the figure beside the claims' files");
}

void check_claims(ClaimsOptions& options, GlobalOptions const&) {
  if (options.within && !options.run) throw ConfigError("--within", "needs --run");
  if (options.claims.empty())
    options.claims = fs::is_directory("configs/claims") ? "configs/claims" : fs::path(build_info().source) / "configs/claims";
}

RunOptions with_file(ClaimsOptions const& options, fs::path const& file) {
  RunOptions run = options;
  run.config = file;
  run.within = {};
  return run;
}

Exit run_file(RunOptions const& options) {
  auto const* const kind = file_kind_of(load(options.config));
  return kind != nullptr ? kind->run(options) : run_ablation(options);
}

/// By the plan; of a study its `cost`, NaN without.
double expected_seconds(ClaimsOptions const& options, fs::path const& file) {
  if (file_kind_of(load(file)) == nullptr) return planned_seconds(with_file(options, file));
  auto const cost = judged_claim(file, options.folders).claim.cost;
  return cost.empty() ? std::nan("") : seconds_in("cost", cost);
}

/// The files of the claims that are asked for. Throws ConfigError for a name that there is not.
std::vector<fs::path> files_of(ClaimsOptions const& options) {
  std::vector<fs::path> files;
  std::vector<std::string> names;
  std::error_code missing;
  for (auto const& entry : fs::directory_iterator(options.claims, missing))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path()), names.push_back(entry.path().stem().string());
  if (files.empty()) throw ConfigError(options.claims.string(), "holds no claims (*.yaml)");
  std::ranges::sort(files);
  for (auto const& name : options.names)
    if (std::ranges::find(names, name) == names.end())
      throw ConfigError(name, fmt::format("there is no such claim in {}{}", options.claims.string(), did_you_mean(name, names)));
  if (!options.names.empty())
    std::erase_if(files, [&](auto const& file) { return std::ranges::find(options.names, file.stem().string()) == options.names.end(); });
  return files;
}

/// The files whose trials fit into the time, by the plan, cheapest first.
std::vector<fs::path> fitting(ClaimsOptions const& options, std::vector<fs::path> const& files) {
  std::vector<std::pair<double, fs::path>> costs;
  for (auto const& file : files) costs.emplace_back(expected_seconds(options, file), file);
  std::ranges::sort(costs, [](auto const& a, auto const& b) { return a.first < b.first || (std::isnan(b.first) && !std::isnan(a.first)); });
  std::vector<fs::path> chosen;
  double left = *options.within;
  for (auto const& [seconds, file] : costs) {
    bool const fits = seconds <= left;
    if (!options.quiet)
      fmt::print("{}: {}{}\n", file.stem().string(), std::isnan(seconds) ? "cannot be planned" : clock_time(seconds),
                 fits ? "" : ", left out");
    if (!fits) continue;
    left -= seconds;
    chosen.push_back(file);
  }
  return chosen;
}

Exit claims(ClaimsOptions const& options) {
  auto const files = files_of(options);
  Exit worst = Exit::done;
  if (options.run)
    for (auto const& file : options.within ? fitting(options, files) : files) {
      Exit const exit = run_file(with_file(options, file));
      if (exit == Exit::interrupted) return exit;
      if (exit != Exit::done) worst = exit;
    }
  std::vector<JudgedClaim> judged;
  for (auto const& file : files) judged.push_back(judged_claim(file, options.folders));
  auto const folder = write_claims(judged, options.folders.output / "claims");
  if (!options.quiet) std::cout << claims_table(judged) << (folder / "report.html").string() << "\n";
  if (options.write) write_claims_page(judged, options.claims);
  return worst;
}

Declared<Command> const claims_command{
    {.order = 16,
     .name = "claims",
     .usage = "[NAME …]",
     .help = "what papers say, and whether it holds here: lists claims with their verdicts, or runs them",
     .footer = "A claim is an ablation or a study with the key `claim`: what is said, by whom, and criteria that are registered before the "
               "first trial.\n\n"
               "examples:\n  heed claims\n  heed claims --run --within 30m\n  heed claims --run alibi positions",
     .add = with_options<ClaimsOptions>(declare_claims, claims, check_claims)}};

}  // namespace

}  // namespace heed
