// heed claims: what papers say, with a verdict of this machine.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/plan.hpp"
#include "experiments/config/build_info.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/config/table.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/program/command.hpp"
#include "experiments/program/system.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"
#include "experiments/report/parts.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

/// A claim with what was found.
struct JudgedClaim : ClaimSettings {
  std::string name, metric = {};             ///< metric: of an ablation
  std::optional<ClaimFinding> finding = {};  ///< nothing: not run yet, or another claim was registered
  std::string remark = {};                   ///< what is incomplete, or why it is not judged
  std::vector<std::string> registrations = {};
  std::size_t seeds = 0;
  double minutes = 0;  ///< of training, summed over the trials; of a study's measurements
  std::string machine = {}, revision = {};

  std::string verdict() const { return finding ? heed::name(finding->verdict) : "not run"; }
  CriterionFinding const* of(std::size_t criterion) const { return finding ? &finding->criteria[criterion] : nullptr; }
};

std::string minutes_in_words(double minutes) { return minutes < 0.05 ? "< 0.1" : fmt::format("{:.1f}", minutes); }

/// What a criterion's number is, for an axis: of a study, the quantity of its rows.
std::string measure_of(Criterion const& criterion, std::string const& metric) {
  if (criterion.within) return "standard errors";
  if (criterion.over_key()) return criterion.best.empty() ? criterion.kind : "exponent";
  if (criterion.kind == "share") return "share of seeds";
  if (!criterion.from.empty()) return "difference of " + with_unit(metric);
  for (auto const& condition : criterion.where)
    if (condition.starts_with("quantity=")) return condition.substr(9);
  return with_unit(metric);
}

std::string published_in_words(PublishedFigure const& published) {
  if (!published.value) return "";
  auto text = fmt::format("{:.4g}", *published.value);
  if (published.seeds) text += fmt::format(" (n = {})", *published.seeds);
  return published.selection.empty() ? text : text + ", " + published.selection;
}

/// A row a criterion; a claim's own cells stand in its first.
TableRows rows_of(std::vector<JudgedClaim> const& claims) {
  TableRows rows{{"claim", "verdict", "criterion", "measured", "finding", "published", "seeds", "minutes"}};
  for (auto const& claim : claims)
    for (std::size_t i = 0; i < claim.criteria.items.size(); ++i) {
      auto& row = rows.emplace_back(std::vector<std::string>(rows.front().size()));
      row[2] = claim.criteria.items[i].in_words(claim.metric);
      if (i == 0) row[0] = claim.name, row[1] = claim.verdict(), row[5] = published_in_words(claim.published);
      auto const* const found = claim.of(i);
      row[4] = found != nullptr ? found->verdict_in_words() : "";
      if (i == 0 && !claim.remark.empty()) row[4] += (row[4].empty() ? "" : "; ") + claim.remark;
      if (found == nullptr) continue;
      row[3] = found->in_words();
      if (i == 0) row[6] = claim.seeds > 0 ? fmt::format("{}", claim.seeds) : "", row[7] = minutes_in_words(claim.minutes);
    }
  return rows;
}

/// results.csv, from which the figure is drawn: a line a criterion.
CsvRows results_of(std::vector<JudgedClaim> const& claims) {
  CsvRows rows{{"claim", "says", "source", "criterion", "value", "low", "high", "at_least", "at_most", "published", "verdict", "finding",
                "seeds", "minutes", "machine", "revision", "measure"}};
  auto const cell = [](double value) { return std::isfinite(value) ? csv_number(value) : ""; };
  for (auto const& claim : claims)
    for (std::size_t i = 0; i < claim.criteria.items.size(); ++i) {
      auto const& criterion = claim.criteria.items[i];
      auto const* const found = claim.of(i);
      auto const interval = found != nullptr ? found->interval : std::nullopt;
      rows.push_back({claim.name, claim.says, claim.source, criterion.in_words(), found != nullptr ? cell(found->value) : "",
                      interval ? cell(interval->low) : "", interval ? cell(interval->high) : "", cell(criterion.bounds().low),
                      cell(criterion.bounds().high), i == 0 ? csv_number(claim.published.value) : "", claim.verdict(),
                      found != nullptr ? name(found->verdict) : "", fmt::format("{}", claim.seeds), fmt::format("{:.2f}", claim.minutes),
                      claim.machine, claim.revision, measure_of(criterion, claim.metric)});
    }
  return rows;
}

/// A panel a criterion, each on its own axis: the measured interval, its bounds as dashed lines, the published number as a ring.
Figure findings_figure(CsvRows const& results, fs::path const& path) {
  Figure figure{.name = "claims",
                .title = "Claims and what was measured",
                .caption =
                    "Dots and bars: measured, with 95 % intervals over seeds, in a study from standard errors; of a formula, how far its "
                    "furthest row lies from it. Dashed: the bound of the criterion. Ring: published.",
                .across = 2,
                .frame_height = 0.3};
  bool const named = std::ranges::count(results.front(), "measure") > 0;  // not in older results
  for (auto const& line : csv_lines(results, path)) {
    Panel panel{.title = line["claim"] + ": " + line["criterion"], .y = {.low = -1, .high = 1}};
    Range range;
    std::map<std::string, double> at;  // of those columns that have a number
    for (char const* const column : {"value", "low", "high", "published", "at_least", "at_most"})
      if (!line[column].empty()) range.include(at[column] = line.number(column));
    if (!at.contains("value")) continue;
    double const value = at["value"];
    CurvePoint const measured = at.contains("low") ? CurvePoint{value, 0, at["low"], at["high"]} : CurvePoint{value, 0, value, value};
    panel.layers.push_back({As::intervals_across, {measured}, {.colour = line_colour(1), .width = 1.6, .size = 0.6}});
    if (at.contains("published"))
      panel.layers.push_back({As::dots, {CurvePoint::bare(at["published"], 0)}, {.colour = line_colour(2), .size = 1, .open = true}});
    for (char const* const bound : {"at_least", "at_most"})
      if (at.contains(bound)) panel.guides.push_back({.at = at[bound], .upright = true, .colour = limit_colour, .dash = 2});
    range.widen(0.1);
    panel.x = axis_over(range, named ? line["measure"] : "", 4);
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

std::vector<StudyPart> present(StudyRecord const& record) {
  auto figure = findings_figure(record.csv, record.folder / "results.csv");
  if (figure.panels.empty()) return {};
  return {{.title = "Measured and published", .html = "", .figures = {std::move(figure)}}};
}

Declared<StudyPage> const claims_page{{"claims", "what papers say, with a verdict", present}};

/// The value of a field of a file's settings, by its type. Throws Error if there is none.
template <class T>
T& field_of(Settings& settings, std::string const& name) {
  for (auto& field : settings.fields())
    if (field.name == name) return *std::get<T*>(field.target);
  throw Error(fmt::format("the file has no key {}", name));
}

/// Reads a claim's file, an ablation or a study, and its results in the output folder if they are there. Throws ConfigError for a file
/// without a claim, and as load_ablation(); FileError for damaged results. Not judged: a file that differs from its last registration.
JudgedClaim judged_claim(fs::path const& file, Folders const& folders) {
  Document const document = load(file);
  JudgedClaim judged;
  ClaimSettings& claim = judged;
  Registration registration;
  judged.name = file.stem().string();
  auto const* const kind = file_kind_of(document);
  fs::path folder = folders.output;
  if (kind != nullptr && kind->settings == nullptr)
    throw ConfigError(file.string(), fmt::format("is a {}, which has no claim: an ablation or a study has", kind->name));
  if (kind != nullptr) {
    auto const settings = kind->settings();
    fill(document, *settings);
    auto& given = dynamic_cast<ClaimSettings&>(field_of<Settings>(*settings, "claim"));
    claim = std::exchange(given, {});
    check_claim(document, claim);
    folder /= field_of<std::string>(*settings, "name");
    registration.trials = {sha256(emit(*settings))};
  } else {
    auto const ablation = load_ablation(document, {}, folders);
    claim = ablation.settings.claim;
    judged.metric = ablation.settings.metric;
    folder = ablation.folder();
    if (claim.given()) registration = registration_of(ablation);
  }
  if (!claim.given()) throw ConfigError(file.string(), "has no claim (claim: {says: …, source: …, criteria: […]})");
  if (!claim.cost.empty()) seconds_in(file.string() + ": claim.cost", claim.cost);
  if (!find_json(folder / "summary.json")) return judged;
  judged.registrations = registrations_in(folder);
  auto changed = changed_since_registration(folder, claim, registration);
  if (changed.empty() && kind == nullptr && in_summary(folder, "metric") != judged.metric) changed = "metric";
  if (!changed.empty()) {
    judged.remark =
        fmt::format("the file differs from what was registered last ({}): heed run or heed claims --run registers an amendment", changed);
    return judged;
  }
  if (kind != nullptr) {
    auto const record = read_study(folder);
    judged.finding = finding_of(claim, record.csv);
    judged.minutes = record.seconds / 60;
  } else {
    auto material = read_material(folder);
    for (auto const& arm : material.arms)
      for (auto const& trial : arm.folders)
        if (!fs::exists(folder / trial / "summary.json")) material.missing.emplace_back(arm.name, 0);
    judged.finding = finding_of(claim, material);
    judged.seeds = material.seeds.size();
    for (auto const& arm : material.arms) judged.minutes += arm.seconds.value_or(0) * static_cast<double>(arm.folders.size()) / 60;
  }
  judged.remark = judged.finding->incomplete;
  auto const texts = texts_at(read_json(folder / "summary.json"), "environment");
  std::map<std::string, std::string> environment(texts.begin(), texts.end());
  judged.machine = environment["processor"];
  judged.revision = environment["revision"];
  return judged;
}

void write_claims(std::vector<JudgedClaim> const& claims, fs::path const& folder) {
  StudyRecord record{{.csv = results_of(claims)}, folder, "claims", "claims"};
  TableRows registered{{"claim", "criteria", "deviations from the source"}};
  for (auto const& claim : claims) {
    record.sentences.push_back(fmt::format("{}: {} ({}): {}", claim.name, claim.says, claim.source, claim.verdict()));
    registered.push_back(
        {claim.name, fmt::format("{}", fmt::join(claim.registrations, "; ")), fmt::format("{}", fmt::join(claim.deviations, "; "))});
  }
  record.tables = {{"Criteria", rows_of(claims)}, {"Registrations and deviations", registered}};
  write_study(record, {});
}

/// Writes README.md and claims.svg: the same for a reader of the repository.
void write_claims_page(std::vector<JudgedClaim> const& claims, fs::path const& folder) {
  double minutes = 0;
  std::set<std::string> machines;
  std::map<std::string, std::size_t> verdicts;
  for (auto const& claim : claims) {
    minutes += claim.minutes, ++verdicts[claim.verdict()];
    if (claim.finding) machines.insert(claim.machine);
  }
  std::string page = fmt::format(
      "# Claims of the literature, with a verdict\n\nMade by `./heed claims --write`; criteria were registered before the first trial "
      "(`claim.json` in the run's folder). `fails` and `unclear` are results like `holds`. Here: {}; {:.0f} minutes on {}.\n\n",
      fmt::join(mapped(verdicts, [](auto const& each) { return fmt::format("{} {}", each.second, each.first); }), ", "), minutes,
      fmt::join(machines, ", "));
  page += markdown_table(rows_of(claims));
  auto const figure = findings_figure(results_of(claims), "results.csv");
  if (auto const drawings = figure.panels.empty() ? std::nullopt : draw({figure})) {
    write_atomically(folder / "claims.svg", drawings->front().svg);
    page += "\n![Measured intervals, bounds and published numbers](claims.svg)\n\n" + figure.caption + "\n";
  }
  for (auto const& claim : claims) {
    page += fmt::format("\n## {}\n\n{} ({}). Verdict: **{}**.", claim.name, claim.says, claim.source, claim.verdict());
    if (!claim.predicts.empty()) page += fmt::format(" Expected: {}.", claim.predicts);
    page += "\n";
    if (!claim.remark.empty()) page += fmt::format("\n{}.\n", claim.remark);
    for (auto const& deviation : claim.deviations) page += fmt::format("\n- deviation: {}", deviation);
    for (auto const& words : claim.registrations) page += fmt::format("\n- {}", words);
    if (claim.finding)
      page += fmt::format("\n- {}{} minutes{}, {}, revision {}", claim.seeds > 0 ? plural(claim.seeds, "seed") + ", " : "",
                          minutes_in_words(claim.minutes), claim.cost.empty() ? "" : fmt::format(" (expected: {})", claim.cost),
                          claim.machine, claim.revision.substr(0, 12));
    page += "\n";
  }
  write_atomically(folder / "README.md", page);
}

// ---------------------------------------------------------------- the command

struct ClaimsOptions : RunOptions {
  std::vector<std::string> names;
  fs::path claims;
  bool run = false, write = false;
};

void declare_claims(CLI::App& app, ClaimsOptions& options) {
  add_arguments(app, "NAME", "claims by the names of their files (default: all)", options.names, Presence::optional, "");
  add_text(app, "--claims", "FOLDER", "folder of the claims' files (default: configs/claims)", options.claims);
  add_flag(app, "--run", options.run, "train what is not there yet");
  add_text(app, "--within", "TIME", "with --run: 90s, 30m, 2h: the claims that heed plan expects to fit, cheapest first",
           [&](std::string const& text) { options.within = seconds_in("--within", text); });
  add_number<Index>(app, "--jobs", options.jobs, 1, 1024, "trials in parallel (default: cores / threads)");
  add_flag(app, "--write", options.write, "write README.md and the figure beside the claims' files");
}

void check_claims(ClaimsOptions& options, GlobalOptions const&) {
  if (options.within && !options.run) throw ConfigError("--within", "needs --run");
  if (options.write && !options.names.empty()) throw ConfigError("--write", "is of all claims: leave the names out");
  if (options.claims.empty())
    options.claims = fs::is_directory("configs/claims") ? "configs/claims" : fs::path(build_info().source) / "configs/claims";
}

RunOptions with_file(ClaimsOptions const& options, fs::path const& file) {
  RunOptions run = options;
  run.config = file;
  run.within = {};
  return run;
}

/// By the plan; of a study its `cost`, NaN without.
double expected_seconds(RunOptions const& options) {
  if (file_kind_of(load(options.config)) == nullptr) return planned_seconds(load_ablation(options), options);
  auto const cost = judged_claim(options.config, options.folders).cost;
  return cost.empty() ? std::nan("") : seconds_in("cost", cost);
}

/// The files of the claims that are asked for. Throws ConfigError for a name that there is not.
std::vector<fs::path> files_of(ClaimsOptions const& options) {
  std::vector<fs::path> files;
  std::vector<std::string> names;
  std::error_code missing;
  for (auto const& entry : fs::directory_iterator(options.claims, missing))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path()), names.push_back(entry.path().stem().string());
  if (files.empty()) throw ConfigError(options.claims.string(), "holds no claims (*.yaml)");
  std::ranges::sort(files);
  for (auto const& name : options.names)
    if (std::ranges::find(names, name) == names.end())
      throw ConfigError(name, fmt::format("there is no such claim in {}{}", options.claims.string(), did_you_mean(name, names)));
  if (!options.names.empty())
    std::erase_if(files, [&](auto const& file) { return std::ranges::find(options.names, file.stem().string()) == options.names.end(); });
  return files;
}

/// The files whose trials fit into the time, by the plan, cheapest first.
std::vector<fs::path> fitting(ClaimsOptions const& options, std::vector<fs::path> const& files) {
  std::vector<std::pair<double, fs::path>> costs;
  auto const began = std::chrono::steady_clock::now();
  for (auto const& file : files) costs.emplace_back(expected_seconds(with_file(options, file)), file);
  std::ranges::sort(costs, [](auto const& a, auto const& b) { return a.first < b.first || (std::isnan(b.first) && !std::isnan(a.first)); });
  std::vector<fs::path> chosen;
  double left = *options.within - seconds_since(began);
  for (auto const& [seconds, file] : costs) {
    bool const fits = seconds <= left;
    if (!options.quiet)
      fmt::print("{}: {}{}\n", file.stem().string(), std::isnan(seconds) ? "cannot be planned" : clock_time(seconds),
                 fits ? "" : ", left out");
    if (!fits) continue;
    left -= seconds;
    chosen.push_back(file);
  }
  return chosen;
}

Exit claims(ClaimsOptions const& options) {
  auto const files = files_of(options);
  Exit worst = Exit::done;
  if (options.run)
    for (auto const& file : options.within ? fitting(options, files) : files) {
      auto const run = with_file(options, file);
      auto const* const kind = file_kind_of(load(file));
      Exit const exit = kind != nullptr ? kind->run(run) : run_ablation(load_ablation(run), run);
      if (exit == Exit::interrupted) return exit;
      if (exit != Exit::done) worst = exit;
    }
  auto const judged = mapped(files, [&](fs::path const& file) { return judged_claim(file, options.folders); });
  auto const folder = options.folders.output / "claims";
  write_claims(judged, folder);
  if (!options.quiet) fmt::print("{}{}\n", table(rows_of(judged)), (folder / "report.html").string());
  if (options.write) write_claims_page(judged, options.claims);
  return worst;
}

Declared<Command> const claims_command{
    {.order = 16,
     .name = "claims",
     .usage = "[NAME …]",
     .help = "what papers say, and whether it holds here: lists claims with their verdicts, or runs them",
     .footer = "A claim is an ablation or a study with the key `claim`: what is said, by whom, and criteria that are registered before the "
               "first trial.\n\n"
               "examples:\n  heed claims\n  heed claims --run --within 30m\n  heed claims --run alibi positions",
     .add = with_options<ClaimsOptions>(declare_claims, claims, check_claims)}};

}  // namespace

}  // namespace heed
