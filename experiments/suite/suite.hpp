#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/plan.hpp"
#include "experiments/metric/statistics.hpp"

namespace heed {

/// An arm over all tasks: the interquartile mean of its scores, and how far it lies above the baseline's, each with its 95 % interval;
/// none for fewer than two seeds, or if a resample is infinite.
struct SuiteEstimate {
  double mean = 0, difference = 0;
  std::optional<Interval> interval = {}, difference_interval = {};
};

/// The mean of the middle half: of n sorted scores those without the ⌊n/4⌋ lowest and highest (a 25 % trimmed mean; Agarwal et al. 2021,
/// "Deep Reinforcement Learning at the Edge of the Statistical Precipice", arXiv 2108.13264).
double interquartile_mean(std::vector<double> scores);

/// `arms`: scores of each arm, task by task, each with `seeds` of them. Intervals are those of the same paper: percentiles over resamples
/// that draw seeds with replacement within each task, for all arms alike, so that differences are paired by seed.
std::vector<SuiteEstimate> suite_estimates(std::vector<std::vector<double>> const& arms, std::size_t seeds, std::size_t baseline,
                                           std::size_t resamples = 50'000);

/// A task of a suite: the ablation that compares the suite's arms on it.
struct SuiteTask {
  std::string name;
  Location location;  ///< in the suite's file
  Ablation ablation;
};

/// Several ablations with the same arms, baseline, seeds and metric, one a task.
struct Suite {
  std::string name;
  std::filesystem::path folder;
  std::vector<SuiteTask> tasks;
};

/// Reads a suite's file: `suite: NAME` and `tasks: {NAME: {base: FILE, key.path: value, …} or FILE of an ablation, …}`; its other keys are
/// an ablation's, which each task that is no file completes. Overrides change these, or the file of an ablation; a task's own keys stay.
/// Throws ConfigError, at the task, for ablations that differ in arms, baseline, seeds or metric, and for a metric that is not bounded:
/// scores that are pooled need one scale.
Suite load_suite(std::filesystem::path const& file, std::vector<std::string> const& overrides, Folders const& folders);

/// Writes results.csv, summary.md, summary.json and report.html of a suite whose ablations have run. Returns its tables for the terminal.
/// Throws Error if there is no seed that every arm has finished in every task, and as read_material().
std::string write_suite(Suite const& suite);

}  // namespace heed
