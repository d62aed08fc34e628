#include "experiments/program/command.hpp"

#include <fmt/format.h>

#include "experiments/judge/judge.hpp"

namespace heed {

namespace {

bool is_table(std::string const& word) { return word.ends_with(".csv") || word.ends_with(".tsv") || word.ends_with(".jsonl"); }

void declare_judge(CLI::App& app, JudgeOptions& options) {
  add_arguments(app, "WHAT", "a run's file, then another one or changed keys; or tables of other programs' runs", options.what,
                Presence::optional, "");
  add_text(app, "--within", "TIME", "seconds, or 90s, 10m, 2h: then the trials are saved, and the same command goes on",
           [&](std::string const& text) { options.within = seconds_in("--within", text); });
  add_number<double>(app, "--margin", options.margin, 0, 1e300, "differences below this do not matter: the arms are then equivalent");
  add_text(app, "--metric", "NAME", "the metric that is compared (default: validation.loss); of a table: its column", options.table.metric);
  add_flag(app, "--lower", options.lower, "lower values are better (default: as the metric defines)");
  add_flag(app, "--higher", options.higher, "higher values are better");
  add_number<Index>(app, "--jobs", options.jobs, 1, 1024, "trials in parallel (default: cores / threads)");
  add_number<Index>(app, "--pairs", options.pairs, 1, 10'000, "train at least so many pairs, also behind a verdict");
  add_flag(app, "--json", options.json, "print one JSON object");
  add_flag(app, "--ledger", options.ledger, "print and draw all candidates that were judged, and which verdicts stand");
  add_text(app, "--arm", "COLUMN", "of a table: the column of arms", options.table.arm);
  add_text(app, "--seed", "COLUMN", "of a table: the column of seeds", options.table.seed);
  add_text(app, "--step", "COLUMN", "of a table: the column of steps", options.table.step);
  add_text(app, "--at", "VALUE", "of a table with steps: last, best, or a step (default: last)", options.table.at);
  add_text(app, "--task", "TASK", "of a table: only rows with this in the column task", options.table.task);
  add_text(app, "--baseline", "ARM", "of a table: the arm that others are compared with (default: the first)", options.baseline);
  add_flag(app, "--fixed", options.fixed, "of a table: the number of seeds was fixed beforehand; the sign-flip test decides");
}

void check_judge(JudgeOptions& options, GlobalOptions const&) {
  if (options.lower && options.higher) throw ConfigError("--lower", "does not go with --higher");
  if (options.what.empty() && !options.ledger) throw ConfigError("judge", "wants a base and a candidate, a table, or --ledger");
}

/// Options that would have no effect are refused.
void refuse_of(char const* what, std::vector<std::pair<char const*, bool>> const& options) {
  for (auto const& [option, given] : options)
    if (given) throw ConfigError(option, fmt::format("has no meaning for {}", what));
}

Exit judge(JudgeOptions const& given) {
  auto const& of = given.table;
  if (given.ledger) {
    refuse_of("--ledger", {{"WHAT", !given.what.empty()}, {"--json", given.json}});
    return show_ledger(given);
  }
  if (!is_table(given.what.front())) {
    refuse_of("runs, which have no table", {{"--arm", of.arm.has_value()},
                                            {"--seed", of.seed.has_value()},
                                            {"--step", of.step.has_value()},
                                            {"--at", of.at != "last"},
                                            {"--task", of.task.has_value()},
                                            {"--baseline", !given.baseline.empty()},
                                            {"--fixed", given.fixed}});
    return judge_candidate(given);
  }
  refuse_of("a table, whose runs are finished",
            {{"--within", given.within.has_value()}, {"--pairs", given.pairs.has_value()}, {"--jobs", given.jobs.has_value()}});
  auto options = given;
  for (auto const& word : given.what) {
    if (!is_table(word)) throw ConfigError(word, "is no table (.csv, .tsv, .jsonl): judge wants tables, or configuration files");
    options.table.files.emplace_back(word);
  }
  return judge_table(options);
}

Declared<Command> const judge_command{
    {.order = 15,
     .name = "judge",
     .usage = "BASE CANDIDATE|key.path=value …",
     .help = "is the difference real? train pairs of seeds until a verdict, which may be looked at after every pair",
     .footer =
         "Exit codes: 10 better, 11 worse, 12 equivalent, 13 unclear; 0 for a table of more than two arms; else as of heed run.\nTrials "
         "and pages are in DIR/judge-BASE-HASH; every candidate is a line of DIR/judge.jsonl.\n\nexamples:\n  heed judge "
         "configs/tasks/recall.yaml model.position=rotary --within 3m\n  heed judge base.yaml candidate.yaml --margin 0.01 --json\n  "
         "heed judge --ledger\n  heed judge results.csv --arm model --seed seed --metric loss --lower",
     .add = with_options<JudgeOptions>(declare_judge, judge, check_judge)}};

}  // namespace

}  // namespace heed
