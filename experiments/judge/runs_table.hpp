#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/data/files.hpp"
#include "experiments/report/ablation_result.hpp"

namespace heed {

/// What the command line says about tables of other programs' runs. Columns that it does not name are found by their usual names.
struct RunsTableOptions {
  std::vector<std::filesystem::path> files;            ///< one table, or TensorBoard's downloads, one a run
  std::optional<std::string> arm, seed, metric, step;  ///< columns; metric also: a name in a column `metric` whose number is in `value`
  std::optional<std::string> task;                     ///< rows with another one in the column `task` are left out
  std::string at = "last";                             ///< which value of a run counts: last, best, or that of a step ("1000")
  Better better = Better::lower;
};

/// Runs of other programs.
struct RunsTable {
  std::string metric, task;     ///< task: "" without a column `task`
  std::vector<ArmResult> arms;  ///< in order of appearance: their names, values, and histories of the metric (without steps: at step 0)
  std::vector<Index> seeds;     ///< in order of appearance, in which pairs are looked at
  std::vector<HashedFile> read;
  std::vector<std::string> remarks;  ///< what was read how, and what is not paired
};

/// Reads a table, .csv, .tsv or .jsonl (an object per line), of these kinds:
///
///     arm,seed,loss                            a row a run; with a column of steps, one for each of them
///     arm,seed,step,metric,value               a row a number, as in heed's results.csv
///     run,step,loss                            without a column of seeds: runs by names (trackio)
///     seed,scaled,additive                     a column an arm; where a cell is empty, there is no run
///     Step,scaled-seed1 - loss,…               a column a run: Weights & Biases' chart; its bands …__MIN and …__MAX do not count
///     Wall time,Step,Value                     a file a run: TensorBoard's run-NAME-tag-METRIC.csv
///
/// A run's name is that of its arm, then - or _, perhaps "s" or "seed", and the seed: gpt-seed3, gpt_s3, gpt-3.
///
/// Throws FileError "PATH:LINE: message" for a row that cannot be read, a run's second value without steps, and steps that do not rise;
/// ConfigError that begins with the option for a column, task, metric or step that is not there, or not clear.
RunsTable read_runs_table(RunsTableOptions const& options);

}  // namespace heed
