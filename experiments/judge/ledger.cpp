#include <algorithm>
#include <chrono>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/config/table.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/judge/judge.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/report/parts.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

using Json = nlohmann::ordered_json;

namespace {

bool are_compared(Json const& line, Json const& other) { return line["base"] == other["base"] && line["metric"] == other["metric"]; }

/// "recall 47239250, validation.loss".
std::string title_of(Candidates const& candidates) {
  auto const text = [&](char const* key) { return candidates.front()[key].get<std::string>(); };
  return fmt::format("{} {}, {}", text("base_name"), text("base").substr(0, 8), text("metric"));
}

/// Of the candidates of each base what is said of them, and a line each.
StudyRecord record_of(std::vector<Candidates> const& bases) {
  StudyRecord record;
  record.kind = "ledger", record.name = "judge-ledger";
  record.csv = {{"base", "number", "candidate", "pairs", "difference", "e", "p", "verdict", "stands"}};
  for (auto const& candidates : bases) {
    record.sentences.push_back(title_of(candidates) + ": " + in_words(candidates));
    auto const stands = standing_verdicts(candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      auto const& line = candidates[i];
      auto const difference = real_at(line, "difference");
      record.csv.push_back({title_of(candidates), fmt::format("{}", i + 1), line["name"], line["pairs"].dump(),
                            difference ? fmt::format("{:.4g}", *difference) : "infinite", fmt::format("{:.4g}", line["e"].get<double>()),
                            fmt::format("{:.2g}", line["p"].get<double>()), line["verdict"], stands[i] ? "yes" : "no"});
    }
  }
  record.tables = {{"Candidates", record.csv}};
  return record;
}

/// Evidence by candidate, in the order in which they were tried.
std::vector<StudyPart> present(StudyRecord const& record) {
  std::vector<StudyPart> parts;
  auto const lines = csv_lines(record.csv, record.folder / "results.csv");
  for (auto const& [base, tried] : grouped(lines, by("base"))) {
    Panel panel{.layers = {{As::dots, {}, {.colour = line_colour(0), .open = true}}, {As::dots, {}, {.colour = line_colour(1)}}},
                .guides = {{.at = 20, .dash = 2}}};
    Range evidence{0.7, 30};
    for (auto const& line : tried) {
      double const e = std::max(line.number("e"), 1e-3);
      panel.layers[line["stands"] == "yes" ? 1 : 0].points.push_back(CurvePoint::bare(static_cast<double>(&line - tried.data() + 1), e));
      for (double const room : {1 / 1.5, 1.5}) evidence.include(e * room);
    }
    panel.x = axis_over({0.5, static_cast<double>(tried.size()) + 0.5}, "candidate, in the order of trial");
    panel.x.step = std::max(panel.x.step, 1.0);
    panel.y = log_axis(evidence);
    panel.y.name = "evidence E";
    auto const caption = "Evidence against no difference to " + base +
                         ". Dashed: 20, a verdict at 5 %. Filled: stands after e-BH at 5 % over all candidates of this base.";
    auto const name = fmt::format("ledger_{}", parts.size() + 1);
    Figure figure{.name = name, .title = "Evidence by candidate", .caption = caption, .panels = {panel}, .shape = 0.45};
    parts.push_back({.title = base, .html = "", .figures = {std::move(figure)}});
  }
  return parts;
}

Declared<StudyPage> const ledger_page{{"ledger", "candidates that were judged, and which verdicts stand", present}};

}  // namespace

bool has_verdict(Json const& line) { return line["verdict"] == "better" || line["verdict"] == "worse"; }

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
  fs::path const path = options.folders.output / "judge.jsonl";
  auto const bases = read_ledger(path);
  if (bases.empty()) throw FileError(fmt::format("{}: there is no candidate in it: heed judge BASE CANDIDATE adds one", path.string()));
  auto record = record_of(bases);
  record.folder = options.folders.output / record.name;
  auto const page = write_study(record, Json::object());
  if (!options.quiet) fmt::print("{}{}\n", page, (record.folder / "report.html").string());
  return Exit::done;
}

}  // namespace heed
