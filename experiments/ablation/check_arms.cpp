#include "experiments/ablation/check_arms.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "experiments/ablation/child.hpp"
#include "experiments/ablation/trials_read.hpp"
#include "experiments/ablation/tuning.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/train/train.hpp"
#include "nn/files/checkpoint.hpp"

namespace heed {

namespace {

/// Calls f; appends words to the message of what it throws.
template <class F>
void with_error_suffix(std::string const& words, F f) {
  try {
    f();
  } catch (ConfigError const& error) {
    throw ConfigError(error.what() + words);
  } catch (FileError const& error) {
    throw FileError(error.what() + words);
  } catch (Error const& error) {
    throw Error(error.what() + words);
  }
}

/// Adds the files that started trials have read. Returns whether all are finished: for a tuned arm, at one point for each seed.
bool add_begun(Ablation const& ablation, TrialsRead& read) {
  auto const add = [&](LoadedExperiment const& trial) {
    read.add(trial);
    return is_finished(folder_of(trial), trial.settings);
  };
  bool all = true;
  for (Job const& job : tuning_trials(ablation).jobs) all = add(job.experiment) && all;
  auto const points = ablation.tuning ? ablation.tuning->points : std::vector<Arm>(1);
  for (auto const& arm : ablation.arms) {
    for (auto const seed : ablation.seeds) {
      bool any = false;
      for (auto const& point : points) any = add(trial_of(ablation, arm.name, joined_changes(arm.changes, point.changes), seed)) || any;
      all = all && any;
    }
  }
  return all;
}

/// Throws FolderError if trials have read, or would read, different content.
void refuse_mixture(Ablation const& ablation, TrialsRead const& read) {
  if (auto const differences = read.differences(); !differences.empty())
    throw FolderError(
        fmt::format("{}: its trials would have read different contents of a file: {} (put the file back, or --fresh begins anew)",
                    ablation.folder().string(), differences));
}

}  // namespace

void check_arm(Ablation const& ablation, Arm const& arm, Trainer& trainer) {
  trainer.require_metric(ablation.metric_location, ablation.settings.metric);
  for (auto const& [key, words] : trainer.unexpected_changes())
    for (auto const& own : arm.changes)
      if (is_within(key, own.key) || is_within(own.key, key))
        throw ConfigError(
            fmt::format("{} in the model whose weights init.from takes, and is another function of them (if that is meant: "
                        "init.changed: [{}])",
                        words, key));
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
    with_error_suffix(fmt::format(" (arm '{}')", arm.name), [&] {
      Trainer trainer(trial, quiet);
      check_arm(ablation, arm, trainer);
      read.add(trial, trainer.files_read(), "now");
      auto const remark = trainer.remark();
      if (remark && std::ranges::find(remarks, *remark) == remarks.end()) remarks.push_back(*remark);
    });
  }
  refuse_mixture(ablation, read);
  return remarks;
}

Exit arms_checked(Ablation const& ablation, bool quiet, bool fresh) {
  return in_child("the check of the arms", [&] {
    for (auto const& remark : check_arms(ablation, quiet, fresh))
      if (!quiet) fmt::print(stderr, "{}\n", remark);
    return Exit::done;
  });
}

}  // namespace heed
