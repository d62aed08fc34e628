#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/train/session.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace {

constexpr char const* plan_file = "ablation.yaml";
std::vector<std::string> const undivided{"shard=0/1"};  // the plan without its division

/// The plan in a folder, without what may differ between its shards: which one it is, and where its paths begin.
Yaml plan_of(fs::path const& folder) {
  Yaml plan = load(folder / plan_file).root;
  std::erase_if(plan.entries, [](auto const& entry) { return entry.key == "shard" || entry.key == "paths"; });
  return plan;
}

void check_same_plan(fs::path const& one, fs::path const& other) {
  if (auto const differing = differing_keys(plan_of(one), plan_of(other)); !differing.empty())
    throw FolderError(fmt::format("{}: holds another plan than {}, and no shard of the same; what differs: {}", other.string(),
                                  one.string(), fmt::join(differing, ", ")));
}

/// Copies a trial's folder, whole or not at all. An unfinished one in its place is put aside.
void copy_trial(fs::path const& from, fs::path const& to) {
  fs::path const part = to.parent_path() / ("." + to.filename().string() + ".part");
  fs::remove_all(part);
  fs::copy(from, part, fs::copy_options::recursive);
  put_aside(to);
  fs::rename(part, to);
}

void copy_trials(fs::path const& from, fs::path const& to, Folders const& folders) {
  Ablation const shard = ablation_in(from, undivided, folders);
  AblationTrials trials;
  trials.look(shard);
  for (auto const* const jobs : {&trials.tuned.jobs, &trials.jobs}) {
    for (Job const& job : *jobs) {
      fs::path const copy = to / job.experiment.settings.name;
      bool const failed = job.state == Job::State::failed;
      bool const there = is_finished(copy, job.experiment.settings) || (failed && failure_of(copy));
      if (job.has_ended() && !there) copy_trial(job.folder(), copy);
    }
  }
}

void say_what_is_missing(fs::path const& folder, Folders const& folders) {
  Ablation const ablation = ablation_in(folder, {}, folders);
  AblationTrials trials;
  trials.look(ablation);
  std::vector<std::string> missing;
  for (auto const* const jobs : {&trials.tuned.jobs, &trials.jobs})
    for (Job const& job : *jobs)
      if (!job.has_ended()) missing.push_back(job.experiment.settings.name);
  if (!missing.empty()) fmt::print(stderr, "heed: {}: these trials no folder brought: {}\n", folder.string(), fmt::join(missing, ", "));
}

fs::path join_shards(fs::path const& target, std::vector<fs::path> const& shards, Folders const& folders, bool quiet) {
  for (auto const& folder : shards) check_same_plan(shards.front(), folder);
  FolderLock const held(target);
  if (fs::exists(target / plan_file)) check_same_plan(shards.front(), target);
  write_atomically(target / plan_file, load_ablation(shards.front() / plan_file, undivided, folders).resolved);
  for (auto const& folder : shards)
    if (!fs::equivalent(folder, target)) copy_trials(folder, target, folders);
  fs::remove(target / "summary.json");  // tables of what was there before
  if (!quiet) say_what_is_missing(target, folders);
  return target;
}

}  // namespace

std::vector<fs::path> with_shards_joined(std::vector<fs::path> const& shards, Folders const& folders, bool quiet) {
  if (shards.size() < 2) return shards;
  std::map<std::string, std::vector<fs::path>> by_name;
  std::set<std::string> with_shards;
  std::vector<std::string> names;
  for (auto const& folder : shards) {
    Yaml const plan = is_file(folder / plan_file) ? load(folder / plan_file).root : Yaml();
    auto const* const name = plan.entry("ablation");
    names.push_back(name == nullptr ? "" : name->value.text);
    by_name[names.back()].push_back(folder);
    if (plan.entry("shard") != nullptr) with_shards.insert(names.back());
  }
  std::vector<fs::path> result;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    auto const& same = by_name[names[i]];
    if (same.size() < 2 || !with_shards.contains(names[i]))
      result.push_back(shards[i]);
    else if (shards[i] == same.front())
      result.push_back(join_shards(folders.output / names[i], same, folders, quiet));
  }
  return result;
}

}  // namespace heed
