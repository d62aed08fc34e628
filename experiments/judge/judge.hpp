#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/program/failure.hpp"
#include "experiments/program/run_options.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// Options of `heed judge`. Columns of a table that are not named are found by their usual names.
struct JudgeOptions : RunOptions {
  std::vector<std::string> what;  ///< BASE [CANDIDATE] [key.path=value …]; one table, or TensorBoard's downloads, one a run
  bool json = false, ledger = false;
  std::optional<Index> pairs;  ///< at least so many, also behind a verdict
  std::optional<double> margin;
  std::optional<std::string> metric;                 ///< of runs; of a table a column, or a name in `metric` whose number is in `value`
  bool lower = false, higher = false;                ///< which values are better; neither: as the metric defines
  std::optional<std::string> arm, seed, step, task;  ///< columns of a table; task: rows with another one are left out
  std::string at = "last";                           ///< which value of a table's run counts: last, best, or that of a step ("1000")
  std::string baseline;                              ///< an arm of the table; empty: the first
  bool fixed = false;                                ///< the number of seeds was fixed beforehand: the sign-flip test decides
};

/// The answer in JSON: of the arm beside the baseline base_name, name, difference, interval (null where infinite), e, p, verdict, pairs,
/// pairs_that_tell (in all, if the verdict is open), noise_floor: {deviation of the baseline over seeds, null of one, difference_told: the
/// smallest that so many pairs tell with 80 % power}; of several arms these in a list, `arms`; and seconds, what was read by its hash,
/// revision and folder.
nlohmann::ordered_json answer_of(Material const& result, double seconds);
/// The noise, and how many pairs more would tell, in words; nothing of several arms.
std::string in_words(nlohmann::ordered_json const& answer, Material const& result);
/// The exit code of the verdict on the only arm beside the baseline; done if there are several.
Exit exit_of(Material const& result);

/// Trains base and candidate in pairs until there is a verdict, or the time is over, and says what came of it. The trials stand in
/// runs/judge-BASE-HASH, where all candidates of this base share those of the base; tables and page in a folder of the candidate's there.
/// Returns better, worse, equivalent or unclear, or the code of a run that failed.
Exit judge_candidate(JudgeOptions const& options);

/// Judges a table of other programs' runs.
Exit judge_table(JudgeOptions const& options);

/// Reads other programs' runs, .csv, .tsv or .jsonl (an object per line): metric, files, and in order of appearance seeds, in which pairs
/// are looked at, and arms with values and histories (without steps: at step 0). Its sentences say what was read how, and what is not
/// paired. Tables may be of these kinds:
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
Material read_runs_table(JudgeOptions const& options);

/// The candidates of one base and metric in the order in which they were first tried: of each the last line of judge.jsonl, which has its
/// judgement, the SHA-256 of base and candidate without name and seed, base_name, name, metric, folder, revision and time.
using Candidates = std::vector<nlohmann::ordered_json>;

/// Appends a line under a lock; returns the candidates beside it. Throws FileError for a damaged file, Error if it cannot be written.
Candidates append(std::filesystem::path const& ledger, nlohmann::ordered_json line);
/// All candidates, by base and metric. Throws FileError for a damaged file.
std::vector<Candidates> read_ledger(std::filesystem::path const& ledger);
/// Whether a line says better or worse.
bool has_verdict(nlohmann::ordered_json const& line);
/// By candidate: whether it has a verdict that e-BH at 5 % over all of them keeps.
std::vector<bool> standing_verdicts(Candidates const& candidates);
/// "3 candidates tried against this base: of 2 verdicts 1 stands after e-BH at 5 %".
std::string in_words(Candidates const& candidates);

/// `heed judge --ledger`: prints the candidates of each base, and writes a page with their evidence into judge-ledger in the output folder.
Exit show_ledger(JudgeOptions const& options);

}  // namespace heed
