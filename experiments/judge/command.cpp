#include "experiments/program/command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "experiments/judge/judge.hpp"

namespace heed {

namespace {

struct JudgeCommand : JudgeOptions {
  std::vector<CLI::Option const*> of_runs, of_tables;  ///< that have no meaning for the other; while the command line is read
};

void declare_judge(CLI::App& app, JudgeCommand& options) {
  add_arguments(app, "WHAT", "a run's file, then another one or changed keys; or tables of other programs' runs", options.what,
                Presence::optional, "");
  options.of_runs = {add_text(app, "--within", "TIME", "seconds, or 90s, 10m, 2h: then the trials are saved, and the same command goes on",
                              [&](std::string const& text) { options.within = seconds_in("--within", text); }),
                     add_number<Index>(app, "--jobs", options.jobs, 1, 1024, "trials in parallel (default: cores / threads)"),
                     add_number<Index>(app, "--pairs", options.pairs, 1, 10'000,
                                       "train at least so many pairs, also behind a verdict (default: to the first verdict, at most 40)")};
  add_number<double>(app, "--margin", options.margin, 0, 1e300, "differences below this do not matter: the arms are then equivalent");
  add_text(app, "--metric", "NAME", "the metric that is compared (default: validation.loss); of a table: its column", options.metric);
  add_flag(app, "--lower", options.lower, "lower values are better (default: as the metric defines)");
  add_flag(app, "--higher", options.higher, "higher values are better");
  add_flag(app, "--json", options.json, "print one JSON object");
  add_flag(app, "--ledger", options.ledger, "print and draw all candidates that were judged, and which verdicts stand");
  options.of_tables = {
      add_text(app, "--arm", "COLUMN", "of a table: the column of arms", options.arm),
      add_text(app, "--seed", "COLUMN", "of a table: the column of seeds", options.seed),
      add_text(app, "--step", "COLUMN", "of a table: the column of steps", options.step),
      add_text(app, "--at", "VALUE", "of a table with steps: last, best, or a step (default: last)", options.at),
      add_text(app, "--task", "TASK", "of a table: only rows with this in the column task", options.task),
      add_text(app, "--baseline", "ARM", "of a table: the arm that others are compared with (default: the first)", options.baseline),
      add_flag(app, "--fixed", options.fixed, "of a table: the number of seeds was fixed beforehand; the sign-flip test decides")};
}

bool is_table(std::string const& word) { return word.ends_with(".csv") || word.ends_with(".tsv") || word.ends_with(".jsonl"); }

void check_judge(JudgeCommand& options, GlobalOptions const&) {
  if (options.lower && options.higher) throw ConfigError("--lower", "does not go with --higher");
  if (options.ledger && (!options.what.empty() || options.json)) throw ConfigError("--ledger", "goes with neither WHAT nor --json");
  if (options.ledger) return;
  if (options.what.empty()) throw ConfigError("judge", "wants a base and a candidate, a table, or --ledger");
  bool const table = is_table(options.what.front());
  for (auto const* const option : table ? options.of_runs : options.of_tables)  // they would have no effect
    if (option->count() > 0)
      throw ConfigError(option->get_name(),
                        fmt::format("has no meaning for {}", table ? "a table, whose runs are finished" : "runs, which have no table"));
}

Exit judge(JudgeCommand const& options) {
  if (options.ledger) return show_ledger(options);
  return is_table(options.what.front()) ? judge_table(options) : judge_candidate(options);
}

Declared<Command> const judge_command{
    {.order = 15,
     .name = "judge",
     .usage = "BASE CANDIDATE|key.path=value …",
     .help = "is the difference real? train pairs of seeds until a verdict, which may be looked at after every pair",
     .footer =
         "Exit codes: 10 better, 11 worse, 12 equivalent, 13 unclear; 0 for a table of more than two arms; else as of heed run.\nTrials "
         "and pages are in DIR/judge-BASE-HASH; every candidate that heed trained is a line of DIR/judge.jsonl.\n\nexamples:\n  heed judge "
         "configs/tasks/recall.yaml model.position=rotary --within 3m\n  heed judge base.yaml candidate.yaml --margin 0.01 --json\n  "
         "heed judge --ledger\n  heed judge results.csv --arm model --seed seed --metric loss --lower",
     .add = with_options<JudgeCommand>(declare_judge, judge, check_judge)}};

}  // namespace

}  // namespace heed
