// A file with `suite:` for heed run, check and plan.

#include "experiments/suite/suite.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/arms.hpp"
#include "experiments/ablation/check_arms.hpp"
#include "experiments/ablation/child.hpp"
#include "experiments/config/table.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/program/command.hpp"
#include "experiments/program/system.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace {

void put(std::vector<Yaml::Entry>& entries, Yaml::Entry const& entry) {
  std::erase_if(entries, [&](Yaml::Entry const& other) { return other.key == entry.key; });
  entries.push_back(entry);
}

bool is_of_ablation(std::string const& override) {
  return std::ranges::count(ablation_keys(), override.substr(0, override.find_first_of(".=")), &AblationKey::name) > 0;
}

/// The ablation of a task with keys of its own: those of the file, as the command line changes them, `base` and `set` with the task's.
Document ablation_of(Document file, Yaml::Entry const& task, std::vector<std::string> const& overrides) {
  for (auto const& override : overrides)
    if (is_of_ablation(override)) assign(file, override);
  auto& entries = file.root.entries;
  Yaml::Entry name{"ablation", task.location, Yaml::scalar(task.key)};
  name.value.location = task.location;
  Yaml::Entry set{"set", task.location, {}};
  if (auto const* const found = file.root.entry("set")) set = *found;
  if (set.value.kind == Yaml::NodeKind::null) set.value.kind = Yaml::NodeKind::map;
  for (auto const& override : overrides) {
    if (is_of_ablation(override)) continue;
    Document one;
    assign(one, override);  // throws if it is malformed
    auto const key = override.substr(0, override.find('='));
    put(set.value.entries, {key, {}, *one.root.find(key)});
  }
  for (auto const& change : task.value.entries) put(change.key == "base" ? entries : set.value.entries, change);
  for (char const* key : {"suite", "tasks"}) std::erase_if(entries, [&](Yaml::Entry const& entry) { return entry.key == key; });
  put(entries, name);
  put(entries, set);
  return file;
}

SuiteTask task_of(Document const& file, Yaml::Entry const& task, std::vector<std::string> const& overrides, Folders folders,
                  fs::path const& folder) {
  if (task.value.kind == Yaml::NodeKind::map) {
    for (char const* const name : {"results.csv", "summary.md", "summary.json", "report.html", "figures"})
      if (*fs::path(task.key).begin() == name) throw ConfigError(task.location, fmt::format("tasks: {} is a file of the suite", task.key));
    if (folders.runs.empty()) folders.runs = folders.output;
    folders.output = folder;
    return {task.key, task.location, load_ablation(ablation_of(file, task, overrides), {}, folders)};
  }
  fs::path const path = (fs::absolute(file.file).parent_path() / task.value.text).lexically_normal();
  if (task.value.kind != Yaml::NodeKind::scalar || !is_file(path))
    throw ConfigError(task.value.location,
                      fmt::format("tasks: {} wants keys of a run {{key.path: value}} or a file of an ablation{}", task.key,
                                  task.value.text.empty() ? "" : fmt::format("; there is no file {}", path.string())));
  return {task.key, task.location, load_ablation(path, overrides, folders)};
}

/// Each arm's name and changes, and which arm is the baseline.
std::vector<std::string> arms_in_words(Ablation const& ablation) {
  std::vector<std::string> all;
  for (auto const& arm : ablation.arms) {
    auto const changes = mapped(arm.changes, [](Assignment const& each) { return each.key + ": " + emit_line(each.value); });
    all.push_back(fmt::format("'{}' ({}{})", arm.name, fmt::join(changes, ", "), all.size() == ablation.baseline ? "; baseline" : ""));
  }
  return all;
}

/// Throws ConfigError at a task that cannot be pooled with the first.
void check_alike(SuiteTask const& first, SuiteTask const& task) {
  Ablation const &a = first.ablation, &b = task.ablation;
  auto const refuse = [&](std::string const& what) { throw ConfigError(task.location, fmt::format("tasks: {} {}", task.name, what)); };
  auto const metric = [](Ablation const& each) { return fmt::format("{} ({})", each.settings.metric, each.settings.at); };
  if (metric(a) != metric(b)) refuse(fmt::format("compares {}, but {} compares {}", metric(b), first.name, metric(a)));
  if (a.seeds != b.seeds)
    refuse(fmt::format("has the seeds {}, but {} has {}", fmt::join(b.seeds, ", "), first.name, fmt::join(a.seeds, ", ")));
  for (auto const& [has, lacks] : {std::pair(&first, &task), std::pair(&task, &first)}) {
    auto const others = arms_in_words(lacks->ablation);
    for (auto const& arm : arms_in_words(has->ablation))
      if (std::ranges::find(others, arm) == others.end())
        throw ConfigError(task.location, fmt::format("tasks: {} has no arm {}, which {} has", lacks->name, arm, has->name));
  }
  if (a.folder() == b.folder()) refuse(fmt::format("has the folder of {}: {}", first.name, a.folder().string()));
}

Suite load_suite(RunOptions const& options) { return load_suite(options.config, options.overrides, options.folders); }

Exit run_suite(RunOptions const& options) {
  Suite const suite = load_suite(options);
  Exit worst = in_child("the check of the tasks", [&] {  // the last task, too, before hours of the first
    for (auto const& task : suite.tasks) check_arms(task.ablation, true, options.fresh);
    return Exit::done;
  });
  if (worst != Exit::done) return worst;
  for (auto const& task : suite.tasks) {
    Exit const exit = run_ablation(task.ablation, options);
    if (exit != Exit::done && exit != Exit::failed) return exit;
    if (exit != Exit::done) worst = exit;
  }
  auto const page = write_suite(suite);
  if (!options.quiet) fmt::print("{}  {}\n", page, (suite.folder / "report.html").string());
  return worst;
}

Exit check_suite(RunOptions const& options) {
  Suite const suite = load_suite(options);
  for (auto const& task : suite.tasks) check_ablation(task.ablation, options.quiet);
  return Exit::done;
}

Exit plan_suite(RunOptions const& options) {
  if (options.slurm) throw ConfigError("--slurm", "is for ablations");
  Suite const suite = load_suite(options);
  double seconds = 0;
  TableRows rows{{"task", "arms", "runs", "time"}};
  for (auto const& [name, location, ablation] : suite.tasks) {
    double const each = planned_seconds(ablation, options);
    seconds += each;
    rows.push_back({name, fmt::format("{}", ablation.arms.size()), fmt::format("{}", ablation.trials_in_shard()),
                    std::isnan(each) ? "cannot be trained" : clock_time(each)});
  }
  fmt::print("{}\n\n{}\n", suite.folder.string(), table(rows));
  if (std::isnan(seconds)) return Exit::other;
  fmt::print("about {} (from a few steps of each arm on this machine just now)\n", clock_time(seconds));
  return Exit::done;
}

Declared<FileKind> const suites{{"suite", run_suite, check_suite, nullptr, plan_suite}};

}  // namespace

Suite load_suite(fs::path const& path, std::vector<std::string> const& overrides, Folders const& folders) {
  Document file = load(path);
  std::vector<std::string> others;
  for (auto const& override : overrides)
    if (override.starts_with("suite="))
      assign(file, override);
    else
      others.push_back(override);
  Suite suite{.name = file.root.entry("suite")->value.text, .folder = {}, .tasks = {}};
  check_folder_name(location_of(file, "suite"), "suite", suite.name);
  suite.folder = folders.output / suite.name;
  Yaml const* const tasks = value_at(file, "tasks");
  if (tasks == nullptr || tasks->kind != Yaml::NodeKind::map || tasks->entries.empty())
    throw ConfigError(location_of(file, "tasks"),
                      "tasks: wants names with keys of a run, {copy: {data.length: 8}, …}, or with a file of an ablation");
  if (auto const* const claim = file.root.entry("claim")) throw ConfigError(claim->location, "claim: belongs to an ablation, not a suite");
  bool const all_files =
      std::ranges::none_of(tasks->entries, [](Yaml::Entry const& each) { return each.value.kind == Yaml::NodeKind::map; });
  for (auto const& entry : file.root.entries)
    if (all_files && entry.key != "suite" && entry.key != "tasks")
      throw ConfigError(entry.location, fmt::format("{}: has no effect, because all tasks are files", entry.key));
  for (auto const& task : tasks->entries) {
    auto next = task_of(file, task, others, folders, suite.folder);
    if (auto const [min, max] = bounds_of(next.ablation.settings.metric); !std::isfinite(max - min))
      throw ConfigError(next.ablation.metric_location,
                        fmt::format("metric: scores of several tasks need one scale, as shares have (validation.accuracy), not {}",
                                    next.ablation.settings.metric));
    if (next.ablation.shard.count > 1) throw ConfigError("shard", "is for ablations: a suite needs all trials");
    for (auto const& other : suite.tasks) check_alike(other, next);
    suite.tasks.push_back(std::move(next));
  }
  return suite;
}

}  // namespace heed
