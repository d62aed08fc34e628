#include "experiments/ablation/check_arms.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/ablation/tuning.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/train/session.hpp"
#include "experiments/train/train.hpp"
#include "nn/files/checkpoint.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

/// The section that a file was read for: the weights', or the data's.
std::string section_of(LoadedExperiment const& trial, std::string const& of) {
  Experiment settings = trial.settings;
  Yaml const whole = tree(settings);
  Yaml const* const section = whole.find(of.starts_with("init.") ? "init" : "data");
  return section == nullptr ? "" : emit_line(*section);
}

/// Adds the files that started trials have read. Returns whether all are finished: for a tuned arm, at one point for each seed.
bool add_begun(Ablation const& ablation, TrialsRead& read) {
  auto const add = [&](LoadedExperiment const& trial) {
    read.add(trial, files_read_in(folder_of(trial)), trial.settings.name);
    return is_finished(folder_of(trial), trial.settings);
  };
  bool all = true;
  for (Job const& job : tuning_trials(ablation).jobs) all = add(job.experiment) && all;
  auto const points = ablation.tuning ? ablation.tuning->points : std::vector<Arm>(1);
  for (auto const& arm : ablation.arms)
    for (auto const seed : ablation.seeds) {
      bool any = false;
      for (auto const& point : points) any = add(trial_of(ablation, arm.name, joined_changes(arm.changes, point.changes), seed)) || any;
      all = all && any;
    }
  return all;
}

void refuse_mixture(Ablation const& ablation, TrialsRead const& read) {
  if (auto const differences = read.differences(); !differences.empty())
    throw FolderError(
        fmt::format("{}: its trials would have read different contents of a file: {} (put the file back, or --fresh begins anew)",
                    ablation.folder().string(), differences));
}

}  // namespace

void TrialsRead::add(LoadedExperiment const& trial, ReadFiles const& read, std::string const& by) {
  for (auto const& [of, file] : read) {
    hold(section_of(trial, of) + "\n" + of, {of, file, by});
    if (!file.file.empty()) hold(file.file, {of, file, by});
  }
}

void TrialsRead::hold(std::string const& key, ReadFile const& seen) {
  auto const& [of, file, by] = seen_.emplace(key, seen).first->second;
  if (file.sha256 == seen.file.sha256) return;
  differences_.emplace(file.sha256 + seen.file.sha256, fmt::format("{}: {} with SHA-256 {} ({}), and {} with {} ({})", of, file.file,
                                                                   file.sha256, by, seen.file.file, seen.file.sha256, seen.by));
}

bool TrialsRead::hold_against_files() {
  bool all = true;
  for (auto const& [key, seen] : seen_) {
    auto const& file = seen.file.file;
    if (key != file) continue;
    if (is_file(file))
      hold(key, {seen.of, {file, sha256_of_file(file)}, "now"});
    else
      all = false;
  }
  return all;
}

std::string TrialsRead::differences() const {
  return fmt::format("{}", fmt::join(mapped(differences_, [](auto const& each) { return each.second; }), "; "));
}

void check_arm(Ablation const& ablation, Arm const& arm, Trainer& trainer) {
  trainer.require_metric(ablation.metric_location, ablation.settings.metric);
  for (ChangedKey const& changed : trainer.unexpected_changes())
    for (auto const& own : arm.changes)
      if (is_within(changed.key, own.key) || is_within(own.key, changed.key))
        throw ConfigError(
            fmt::format("{} in the model whose weights init.from takes, and is another function of them (if that is meant: "
                        "init.changed: [{}])",
                        changed.words, changed.key));
}

std::vector<std::string> check_arms(Ablation const& ablation, bool quiet, bool fresh) {
  std::vector<std::string> remarks;
  TrialsRead read;
  // What arms that have begun would read now is known if nothing is left to train, or if all files are where they were read.
  bool const known = !fresh && (add_begun(ablation, read) || read.hold_against_files());
  refuse_mixture(ablation, read);
  auto const& tuning = ablation.tuning;
  for (auto const& arm : ablation.arms) {
    auto const trial = tuning ? tuning_trial(ablation, arm, tuning->points.front(), tuning->seeds.front())
                              : trial_of(ablation, arm.name, arm.changes, ablation.seeds.front());
    if (known && has_checkpoint(folder_of(trial))) continue;
    auto const of_arm = fmt::format(" (arm '{}')", arm.name);
    try {
      Trainer trainer(trial, quiet);
      check_arm(ablation, arm, trainer);
      read.add(trial, trainer.files_read(), "now");
      auto const remark = trainer.remark();
      if (remark && std::ranges::find(remarks, *remark) == remarks.end()) remarks.push_back(*remark);
    } catch (ConfigError const& error) {
      throw ConfigError(error.what() + of_arm);
    } catch (FileError const& error) {
      throw FileError(error.what() + of_arm);
    } catch (Error const& error) {
      throw Error(error.what() + of_arm);
    }
  }
  refuse_mixture(ablation, read);
  return remarks;
}

}  // namespace heed
