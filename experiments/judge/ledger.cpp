#include "experiments/judge/ledger.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/config/table.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/evidence.hpp"
#include "experiments/report/parts.hpp"
#include "experiments/report/report.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

Json json_of(LedgerEntry const& e) {
  return {{"time", e.time},
          {"base", e.base},
          {"base_name", e.base_name},
          {"candidate", e.candidate},
          {"name", e.name},
          {"metric", e.metric},
          {"pairs", e.pairs},
          {"e", e.e},
          {"p", e.p},
          {"difference", e.difference ? Json(*e.difference) : Json(nullptr)},
          {"verdict", e.verdict},
          {"folder", e.folder},
          {"revision", e.revision}};
}

LedgerEntry entry_of(Json const& json) {
  LedgerEntry e;
  for (auto const& [key, text] : {std::pair("time", &e.time),
                                  {"base", &e.base},
                                  {"base_name", &e.base_name},
                                  {"candidate", &e.candidate},
                                  {"name", &e.name},
                                  {"metric", &e.metric},
                                  {"verdict", &e.verdict},
                                  {"folder", &e.folder},
                                  {"revision", &e.revision}})
    *text = json.at(key).get<std::string>();
  e.pairs = json.at("pairs").get<std::size_t>();
  e.e = json.at("e").get<double>();
  e.p = json.at("p").get<double>();
  e.difference = real_at(json, "difference");
  return e;
}

bool has_verdict(LedgerEntry const& e) { return e.verdict == "better" || e.verdict == "worse"; }

std::vector<bool> standing_of(std::vector<LedgerEntry> const& candidates) {
  std::vector<double> evidence;
  for (auto const& each : candidates) evidence.push_back(each.e);
  return standing(evidence);
}

std::string plural(std::size_t count, char const* what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

// ---------------------------------------------------------------- the page

constexpr std::array ledger_columns{"base", "metric", "candidate", "pairs", "difference", "e", "p", "verdict", "stands"};

CsvRows rows_of(std::vector<std::vector<LedgerEntry>> const& bases) {
  CsvRows rows{{ledger_columns.begin(), ledger_columns.end()}};
  for (auto const& candidates : bases) {
    auto const stands = standing_of(candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      auto const& e = candidates[i];
      rows.push_back({e.base_name + " " + e.base.substr(0, 8), e.metric, e.name, fmt::format("{}", e.pairs), csv_number(e.difference),
                      csv_number(e.e), csv_number(e.p), e.verdict, has_verdict(e) && stands[i] ? "yes" : "no"});
    }
  }
  return rows;
}

/// Evidence by candidate, in the order in which they were tried; filled dots stand.
Figure evidence_figure(std::string const& base, std::vector<CsvLine> const& lines, std::size_t number) {
  FigureLayer open{As::dots, {}, {.colour = line_colour(0), .open = true}}, filled{As::dots, {}, {.colour = line_colour(1)}};
  Range range;
  range.include(1);
  range.include(20);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto const point = CurvePoint::bare(static_cast<double>(i + 1), std::max(lines[i].number("e"), 1e-3));
    (lines[i]["stands"] == "yes" ? filled : open).points.push_back(point);
    range.include(point.y);
  }
  range = {range.low / 1.5, range.high * 1.5};
  auto y = log_axis(range);
  y.name = "evidence E";
  Panel panel{.x = axis_over({0.5, static_cast<double>(lines.size()) + 0.5}, "candidate, in the order of trial"), .y = y};
  panel.layers = {open, filled};
  panel.guides = {{.at = 20, .dash = 2}};
  return {.name = fmt::format("ledger_{}", number),
          .title = base,
          .caption =
              "Evidence against no difference, by candidate. Dashed: 20, a verdict at 5 %. Filled: stands after e-BH at 5 % over all "
              "candidates of this base.",
          .panels = {panel},
          .shape = 0.45};
}

std::vector<StudyPart> present(StudyRecord const& record) {
  std::vector<StudyPart> parts;
  std::vector<CsvLine> lines;
  std::string before;
  auto const all = csv_lines(record.csv, record.folder / "results.csv");
  for (std::size_t i = 0; i <= all.size(); ++i) {
    auto const base = i < all.size() ? all[i]["base"] + ", " + all[i]["metric"] : "";
    if (base != before && !lines.empty()) {
      parts.push_back({.title = before, .html = "", .figures = {evidence_figure(before, lines, parts.size() + 1)}});
      lines.clear();
    }
    if (i < all.size()) lines.push_back(all[i]);
    before = base;
  }
  return parts;
}

Declared<StudyPage> const ledger_page{{"ledger", "candidates that were judged, and which verdicts stand", present}};

}  // namespace

void LedgerEntry::take(Judgement const& judgement, Material const& result) {
  auto const& c = judgement.comparison;
  metric = result.metric;
  verdict = heed::name(c.verdict);
  pairs = c.seeds;
  e = c.e.value_or(1);
  p = c.p;
  if (std::isfinite(c.mean)) difference = c.mean;
  folder = result.folder.string();
  auto const found = std::ranges::find(result.environment, "revision", [](auto const& each) { return each.first; });
  revision = found == result.environment.end() ? "" : found->second;
  time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

Ledger::Ledger(fs::path path) : path_(std::move(path)) { read(); }

void Ledger::read() {
  entries_.clear();
  std::string const text = read_if_there(path_).value_or("");
  std::size_t line = 0;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    ++line;
    try {
      entries_.push_back(entry_of(Json::parse(text.substr(at, end - at))));
    } catch (std::exception const& error) {
      throw FileError(fmt::format("{}:{}: is no line of a ledger: {}", path_.string(), line, error.what()));
    }
  }
}

void Ledger::add(LedgerEntry const& entry) {
  auto const lock = FolderLock::wait(path_.parent_path(), ".judge.lock", std::chrono::seconds(60));
  if (!lock) throw Error(fmt::format("{}: another process has held its lock for a minute", path_.string()));
  std::ofstream file(path_, std::ios::app);
  file << json_of(entry).dump() << '\n';
  file.close();
  if (!file) throw Error(fmt::format("{}: cannot be written", path_.string()));
  read();
}

std::vector<std::vector<LedgerEntry>> Ledger::by_base() const {
  std::vector<std::vector<LedgerEntry>> bases;
  for (auto const& entry : entries_) {
    auto base = std::ranges::find_if(
        bases, [&](auto const& each) { return each.front().base == entry.base && each.front().metric == entry.metric; });
    if (base == bases.end()) base = bases.emplace(bases.end());
    auto const same = std::ranges::find(*base, entry.candidate, &LedgerEntry::candidate);
    if (same == base->end())
      base->push_back(entry);
    else
      *same = entry;
  }
  return bases;
}

Standing Ledger::standing_of(LedgerEntry const& entry, Judgement const& judgement) const {
  Standing result;
  for (auto const& candidates : by_base()) {
    if (candidates.front().base != entry.base || candidates.front().metric != entry.metric) continue;
    auto const stands = heed::standing_of(candidates);
    result.tried = candidates.size();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!has_verdict(candidates[i])) continue;
      ++result.verdicts;
      result.stand += stands[i] ? 1 : 0;
      result.stands = result.stands || (stands[i] && candidates[i].candidate == entry.candidate);
    }
  }
  if (!has_verdict(entry) || result.stands) return result;
  double const bound = 20 * static_cast<double>(result.tried) / static_cast<double>(result.stand + 1);
  auto const enough = pairs_that_tell(judgement.differences, bound);
  if (enough && *enough > entry.pairs) result.more = *enough - entry.pairs;
  return result;
}

std::string in_words(Standing const& s) {
  auto text = fmt::format("{} tried against this base", plural(s.tried, "candidate"));
  if (s.verdicts == 0) return text + ", no verdict";
  text += fmt::format(": of {} {} after e-BH at 5 %", plural(s.verdicts, "verdict"),
                      s.stand == 1 ? "1 stands" : fmt::format("{} stand", s.stand));
  if (s.stands) return text + ", this one too";
  return s.more ? text + fmt::format("; about {} would let this one stand", plural(*s.more, "more pair")) : text;
}

Json json_of(Standing const& s) {
  return {{"tried", s.tried},
          {"verdicts", s.verdicts},
          {"stand", s.stand},
          {"stands", s.stands},
          {"pairs_more", s.more ? Json(*s.more) : Json(nullptr)}};
}

Exit show_ledger(JudgeOptions const& options) {
  fs::path const path = options.folders.output / "judge.jsonl", folder = options.folders.output / "judge-ledger";
  auto const bases = Ledger(path).by_base();
  if (bases.empty()) throw FileError(fmt::format("{}: there is no candidate in it: heed judge BASE CANDIDATE adds one", path.string()));
  auto rows = rows_of(bases);
  fs::create_directories(folder);
  std::string csv;
  for (auto const& row : rows) csv += csv_line(row);
  write_atomically(folder / "results.csv", csv);
  Json summary{{"study", "ledger"}, {"name", "judge-ledger"}, {"finished", true}};
  for (auto const& candidates : bases) {
    auto const stands = standing_of(candidates);
    std::size_t verdicts = 0, stand = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (has_verdict(candidates[i])) ++verdicts, stand += stands[i] ? 1 : 0;
    summary["sentences"].push_back(fmt::format("{}, {}: {} tried, {}, of which {} after e-BH at 5 %", candidates.front().base_name,
                                               candidates.front().metric, plural(candidates.size(), "candidate"),
                                               plural(verdicts, "verdict"), stand == 1 ? "1 stands" : fmt::format("{} stand", stand)));
  }
  summary["tables"].push_back({{"title", "Candidates"}, {"rows", rows}});
  summary["environment"] = environment();
  write_summary(folder, summary, {"results.csv"});
  write_report(folder, true);
  if (options.quiet) return Exit::done;
  fmt::print("{}\n", table(rows));
  for (auto const& sentence : summary["sentences"]) fmt::print("{}\n", sentence.get<std::string>());
  fmt::print("{}\n", (folder / "report.html").string());
  return Exit::done;
}

}  // namespace heed
