#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/ablation/jobs.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

/// The trials of `tune:` and their results; empty without it.
struct TuningResult {
  std::vector<std::string> names;  ///< names of an arm at a point of the grid, arm by arm: the jobs' `arm`
  std::vector<Job> jobs;
  std::vector<std::optional<std::size_t>> chosen{};  ///< per arm the chosen point of the grid; nothing if it is not tuned, or given up
};

/// All trials of `tune:`, not yet started, ordered by seed; nothing is chosen yet.
TuningResult tuning_trials(Ablation const& ablation);

/// Whether all tuning trials of an arm have ended, and training ends with a finite value at no point of the grid: it is not compared.
bool is_given_up(Ablation const& ablation, TuningResult const& tuned, std::size_t arm);

/// Chooses the point with the best score of every arm that is tuned.
void choose(Ablation const& ablation, TuningResult& tuned);

/// The values that tuning selected for an arm; may be none.
std::vector<Assignment> tuned_changes(Ablation const& ablation, TuningResult const& tuned, std::size_t arm);

/// The trials of the comparison, not yet started, ordered by seed: every arm, with its tuned values; arms without a choice are left out.
std::vector<Job> comparison_trials(Ablation const& ablation, TuningResult const& tuned);

/// An arm that `stop_losers` has stopped, and after how many seeds.
struct Loser {
  std::size_t arm, seeds;
};
struct SeedsDecided {
  bool open;  ///< a trial that is needed has not ended
  std::vector<Loser> losers;
};
/// Gives out the seeds of a comparison one after another where `stop_losers` or `until_verdict` decide who gets more: a function of the
/// trials' values in the order of seeds, whenever, wherever and however many at a time they were trained. After each seed that all arms
/// still in it have ended, with `stop_losers` those leave whose confidence sequence against the arm with the best mean, corrected for the
/// number of arms, excludes differences up to the margin; with `until_verdict` those with a verdict against the baseline, and so many
/// seeds. The baseline stays as long as any other arm. Marks what nobody needs as spared, and what is needed next as waiting, up to
/// `at_a_time` trials, of seeds that follow too.
SeedsDecided give_out_seeds(Ablation const& ablation, std::vector<Job>& jobs, Index at_a_time = 1);

/// All trials of an ablation, as its folder has them: of tuning, and of the comparison of arms that are tuned.
struct AblationTrials {
  TuningResult tuned;
  std::vector<Job> jobs;

  /// Looks at them, again if called again: as look_at().
  void look(Ablation const& ablation);
};

/// A sentence for each chosen number at an end of its grid, with the arms that chose it: the best value may lie beyond.
std::vector<std::string> choices_on_edge(Ablation const& ablation, TuningResult const& tuned);

/// Changes as shown in tables: by key, the value on one line.
KeyValues keys_of(std::vector<Assignment> const& changes);
/// The choices and their scores for the ablation's result; requires `tune:`.
TuningScores tuning_scores(Ablation const& ablation, TuningResult const& tuned);

}  // namespace heed
