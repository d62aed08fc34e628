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

/// What the command line says about tables of other programs' runs. Columns that it does not name are found by their usual names.
struct RunsTableOptions {
  std::vector<std::filesystem::path> files;            ///< one table, or TensorBoard's downloads, one a run
  std::optional<std::string> arm, seed, metric, step;  ///< columns; metric also: a name in a column `metric` whose number is in `value`
  std::optional<std::string> task;                     ///< rows with another one in the column `task` are left out
  std::string at = "last";                             ///< which value of a run counts: last, best, or that of a step ("1000")
  Better better = Better::lower;
};

/// Options of `heed judge`, besides those of the runs that it trains.
struct JudgeOptions : RunOptions {
  std::vector<std::string> what;  ///< BASE [CANDIDATE] [key.path=value …], or tables of other programs' runs
  bool json = false, ledger = false;
  std::optional<Index> pairs;  ///< at least so many, also behind a verdict
  std::optional<double> margin;
  RunsTableOptions table;              ///< its metric: of runs, too
  bool lower = false, higher = false;  ///< which values are better; neither: as the metric defines
  std::string baseline;                ///< an arm of the table; empty: the first
  bool fixed = false;                  ///< the number of seeds was fixed beforehand: the sign-flip test decides
};

/// What is said of one candidate.
struct Judgement {
  std::string base, candidate, unit;
  std::vector<double> differences;  ///< candidate − base, by pair
  Comparison comparison;            ///< of those
  Question question;
  double base_deviation = 0;          ///< over seeds: the noise floor
  std::optional<double> told;         ///< the smallest difference that so many pairs tell with 80 % power
  std::optional<std::size_t> enough;  ///< pairs in all that would tell, if the verdict is open
  double seconds_a_pair = 0;          ///< 0: unknown
};

/// The judgement of an arm of a result that has at least one pair.
Judgement judgement_of(AblationResult const& result, ArmResult const& candidate);

// ---------------------------------------------------------------- tables of other programs' runs

/// Runs of other programs: metric, files, and in order of appearance seeds, in which pairs are looked at, and arms with their names, values
/// and histories of the metric (without steps: at step 0).
struct RunsTable : Material {
  std::string task;                  ///< "" without a column `task`
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

// ---------------------------------------------------------------- the ledger

/// A candidate that was judged against a base: a line of judge.jsonl.
struct LedgerEntry {
  std::string base, base_name;  ///< SHA-256 of its configuration, without name and seed
  std::string candidate, name;  ///< the same
  std::string metric, verdict;
  std::size_t pairs = 0;
  double e = 1, p = 1;
  std::optional<double> difference;  ///< nothing if it is infinite
  std::string folder, revision, time;

  void take(Judgement const& judgement, Material const& result);
  bool has_verdict() const { return verdict == "better" || verdict == "worse"; }
};

/// The candidates of one base and metric, in the order in which they were first tried.
struct Candidates : std::vector<LedgerEntry> {
  bool are_like(LedgerEntry const& entry) const { return front().base == entry.base && front().metric == entry.metric; }
  std::vector<bool> stands() const;  ///< by candidate: a verdict that e-BH at 5 % over all of them keeps (standing())
  std::string title() const;         ///< "recall 47239250, validation.loss"
  /// "3 candidates tried against this base: of 2 verdicts 1 stands after e-BH at 5 %".
  std::string in_words() const;
};

/// Every candidate that was ever judged, a line each time; of a candidate's lines the last counts. Throws FileError for a damaged one.
std::vector<Candidates> read_ledger(std::filesystem::path const& path);
/// Appends a line, under a lock. Throws Error if it cannot be written.
void append(std::filesystem::path const& path, LedgerEntry const& entry);

/// How many pairs more would let a candidate's verdict stand; nothing if it stands, is none, or no number would.
std::optional<std::size_t> pairs_to_stand(Candidates const& candidates, LedgerEntry const& entry, Judgement const& judgement);

/// `heed judge --ledger`: prints the candidates of each base, and writes a page with their evidence into judge-ledger in the output folder.
Exit show_ledger(JudgeOptions const& options);

// ---------------------------------------------------------------- the command

/// Trains base and candidate of `what` in pairs until there is a verdict, or the time is over, and says what came of it. The trials stand
/// in runs/judge-BASE-HASH, where all candidates of this base share those of the base; tables and page in a folder of the candidate's
/// there. Returns better, worse, equivalent or unclear, or the code of a run that failed.
Exit judge_candidate(JudgeOptions const& options);

/// Judges a table of other programs' runs. Returns the verdict on the only arm beside the baseline; done if there are several.
Exit judge_table(JudgeOptions const& options);

/// The noise, and how many pairs more would tell, in words.
std::string in_words(Judgement const& judgement);
/// difference, interval (null where infinite), e, p, verdict, pairs, pairs_that_tell, noise_floor.
nlohmann::ordered_json json_of(Judgement const& judgement);
/// The exit code of a verdict.
Exit exit_of(Verdict verdict);

}  // namespace heed
