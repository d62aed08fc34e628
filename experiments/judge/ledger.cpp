#include <algorithm>
#include <chrono>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/config/table.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/judge/judge.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/report/parts.hpp"
#include "experiments/report/report.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

using Json = nlohmann::ordered_json;

namespace {

bool are_compared(Json const& line, Json const& other) { return line["base"] == other["base"] && line["metric"] == other["metric"]; }
bool has_verdict(Json const& line) { return line["verdict"] == "better" || line["verdict"] == "worse"; }

/// "recall 47239250, validation.loss".
std::string title_of(Candidates const& candidates) {
  auto const text = [&](char const* key) { return candidates.front()[key].get<std::string>(); };
  return fmt::format("{} {}, {}", text("base_name"), text("base").substr(0, 8), text("metric"));
}

// ---------------------------------------------------------------- the page

CsvRows rows_of(std::vector<Candidates> const& bases) {
  CsvRows rows{{"base", "candidate", "pairs", "difference", "e", "p", "verdict", "stands"}};
  for (auto const& candidates : bases) {
    auto const stands = standing_verdicts(candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      auto const& line = candidates[i];
      auto const difference = real_at(line, "difference");
      rows.push_back({title_of(candidates), line["name"], line["pairs"].dump(),
                      difference ? fmt::format("{:.4g}", *difference) : "infinite", fmt::format("{:.4g}", line["e"].get<double>()),
                      fmt::format("{:.2g}", line["p"].get<double>()), line["verdict"], stands[i] ? "yes" : "no"});
    }
  }
  return rows;
}

/// The figure of a base, still without candidates.
StudyPart part_of(std::string const& base, std::size_t number) {
  Panel const panel{.layers = {{As::dots, {}, {.colour = line_colour(0), .open = true}}, {As::dots, {}, {.colour = line_colour(1)}}},
                    .guides = {{.at = 20, .dash = 2}}};
  Figure const figure{.name = fmt::format("ledger_{}", number),
                      .title = "Evidence by candidate",
                      .caption = "Evidence against no difference to " + base +
                                 ". Dashed: 20, a verdict at 5 %. Filled: stands after e-BH at 5 % over all candidates of this base.",
                      .panels = {panel},
                      .shape = 0.45};
  return {.title = base, .html = "", .figures = {figure}};
}

/// Evidence by candidate, in the order in which they were tried.
std::vector<StudyPart> present(StudyRecord const& record) {
  std::vector<StudyPart> parts;
  double tried = 0;
  Range evidence;
  for (auto const& line : csv_lines(record.csv, record.folder / "results.csv")) {
    if (parts.empty() || parts.back().title != line["base"]) {
      parts.push_back(part_of(line["base"], parts.size() + 1));
      tried = 0, evidence = {0.7, 30};
    }
    auto& panel = parts.back().figures.front().panels.front();
    auto const point = CurvePoint::bare(++tried, std::max(line.number("e"), 1e-3));
    panel.layers[line["stands"] == "yes" ? 1 : 0].points.push_back(point);
    for (double const room : {1 / 1.5, 1.5}) evidence.include(point.y * room);
    panel.x = axis_over({0.5, tried + 0.5}, "candidate, in the order of trial");
    panel.x.step = std::max(panel.x.step, 1.0);
    panel.y = log_axis(evidence);
    panel.y.name = "evidence E";
  }
  return parts;
}

Declared<StudyPage> const ledger_page{{"ledger", "candidates that were judged, and which verdicts stand", present}};

}  // namespace

std::vector<bool> standing_verdicts(Candidates const& candidates) {
  auto stands = standing(mapped(candidates, [](Json const& line) { return line["e"].get<double>(); }));
  for (std::size_t i = 0; i < stands.size(); ++i) stands[i] = stands[i] && has_verdict(candidates[i]);
  return stands;
}

std::string in_words(Candidates const& candidates) {
  auto const verdicts = static_cast<std::size_t>(std::ranges::count_if(candidates, has_verdict));
  auto const stand = std::ranges::count(standing_verdicts(candidates), true);
  auto const text = fmt::format("{} tried against this base", plural(candidates.size(), "candidate"));
  if (verdicts == 0) return text + ", no verdict";
  return fmt::format("{}: of {} {} {} after e-BH at 5 %", text, plural(verdicts, "verdict"), stand, stand == 1 ? "stands" : "stand");
}

std::vector<Candidates> read_ledger(fs::path const& path) {
  std::vector<Candidates> bases;
  std::istringstream text(read_if_there(path).value_or(""));
  std::string line;
  for (std::size_t number = 1; std::getline(text, line); ++number) try {
      auto const entry = Json::parse(line);
      for (char const* const key : {"base", "base_name", "candidate", "name", "metric", "verdict"})
        if (!entry.at(key).is_string()) throw Error(fmt::format("{} is no text", key));
      for (char const* const key : {"pairs", "e", "p"})
        if (!entry.at(key).is_number()) throw Error(fmt::format("{} is no number", key));
      auto base = std::ranges::find_if(bases, [&](Candidates const& each) { return are_compared(each.front(), entry); });
      if (base == bases.end()) base = bases.emplace(bases.end());
      auto const same = std::ranges::find_if(*base, [&](Json const& each) { return each["candidate"] == entry["candidate"]; });
      if (same == base->end())
        base->push_back(entry);
      else
        *same = entry;
    } catch (std::exception const& error) {
      throw FileError(fmt::format("{}:{}: is no line of a ledger: {}", path.string(), number, error.what()));
    }
  return bases;
}

Candidates append(fs::path const& path, Json line) {
  auto const lock = FolderLock::attempt(path.parent_path(), ".judge.lock", FolderLock::LockMode::alone, std::chrono::seconds(60));
  if (!lock) throw Error(fmt::format("{}: another process has held its lock for a minute", path.string()));
  line["time"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  write_atomically(path, read_if_there(path).value_or("") + json_text(line) + "\n");  // so that no line is ever cut
  auto const bases = read_ledger(path);
  return *std::ranges::find_if(bases, [&](Candidates const& each) { return are_compared(each.front(), line); });
}

Exit show_ledger(JudgeOptions const& options) {
  fs::path const path = options.folders.output / "judge.jsonl", folder = options.folders.output / "judge-ledger";
  auto const bases = read_ledger(path);
  if (bases.empty()) throw FileError(fmt::format("{}: there is no candidate in it: heed judge BASE CANDIDATE adds one", path.string()));
  auto const rows = rows_of(bases);
  Json summary{{"study", "ledger"}, {"name", "judge-ledger"}, {"finished", true}, {"environment", environment()}};
  for (auto const& candidates : bases) summary["sentences"].push_back(title_of(candidates) + ": " + in_words(candidates));
  summary["tables"].push_back({{"title", "Candidates"}, {"rows", rows}});
  fs::create_directories(folder);
  write_atomically(folder / "results.csv", csv_text(rows));
  write_summary(folder, summary, {"results.csv"});
  write_report(folder, true);
  if (options.quiet) return Exit::done;
  fmt::print("{}\n", table(rows));
  for (auto const& sentence : summary["sentences"]) fmt::print("{}\n", sentence.get<std::string>());
  fmt::print("{}\n", (folder / "report.html").string());
  return Exit::done;
}

}  // namespace heed
