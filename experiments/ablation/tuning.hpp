#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/jobs.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

/// The trials of `tune:` and what came of them; empty without it.
struct TuningResult {
  std::vector<std::string> names;  ///< of an arm at a point of the grid, arm after arm: the jobs' `arm`
  std::vector<Job> jobs;
  std::vector<std::optional<std::size_t>> chosen{};  ///< for each arm a point of the grid; nothing if none has a finite score
};

/// All trials of `tune:`, none begun, seed after seed; nothing is chosen yet.
TuningResult tuning_trials(Ablation const& ablation);

/// The trials of an arm at a point of the grid, by seed.
std::vector<Job const*> trials_at(Ablation const& ablation, TuningResult const& tuned, std::size_t arm, std::size_t point);

/// The mean of the metric over an arm's tuning seeds at a point; nothing unless all of these trials were trained to their end.
std::optional<double> score_of(Ablation const& ablation, TuningResult const& tuned, std::size_t arm, std::size_t point);

/// The point at which an arm has the best score, the first of equal ones; nothing if none has a finite one.
std::optional<std::size_t> best_point(Ablation const& ablation, TuningResult const& tuned, std::size_t arm);

/// What tuning chose for an arm; nothing without `tune:`, or if no point has a finite score.
std::vector<Assignment> choice_of(Ablation const& ablation, TuningResult const& tuned, std::size_t arm);

/// The trials of the comparison, none begun: every arm with what tuning chose and every seed, but for arms without a choice.
std::vector<Job> comparison_trials(Ablation const& ablation, TuningResult const& tuned);

/// A sentence for each number that was chosen and is the smallest or the largest of its grid, with the arms that chose it: what suits them
/// best may lie beyond.
std::vector<std::string> choices_on_edge(Ablation const& ablation, TuningResult const& tuned);

/// Changes as tables have them: by key, the value in one line.
Keys keys_of(std::vector<Assignment> const& changes);
/// What was chosen from which scores, as the result of the ablation has it; of one with `tune:`.
TuningScores tuning_scores(Ablation const& ablation, TuningResult const& tuned);

}  // namespace heed
