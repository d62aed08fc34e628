#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <utility>

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

namespace heed {

using Json = nlohmann::ordered_json;

namespace {

auto texts_of(auto& e) {
  return std::vector{std::pair("time", &e.time),  {"base", &e.base},     {"base_name", &e.base_name},
                     {"candidate", &e.candidate}, {"name", &e.name},     {"metric", &e.metric},
                     {"verdict", &e.verdict},     {"folder", &e.folder}, {"revision", &e.revision}};
}

Json json_of(LedgerEntry const& e) {
  Json json;
  for (auto const& [key, text] : texts_of(e)) json[key] = *text;
  json.update(Json{{"pairs", e.pairs}, {"e", e.e}, {"p", e.p}, {"difference", e.difference ? Json(*e.difference) : Json(nullptr)}});
  return json;
}

LedgerEntry entry_of(Json const& json) {
  LedgerEntry e;
  for (auto const& [key, text] : texts_of(e)) *text = json.at(key).get<std::string>();
  e.pairs = json.at("pairs").get<std::size_t>();
  e.e = json.at("e").get<double>();
  e.p = json.at("p").get<double>();
  e.difference = real_at(json, "difference");
  return e;
}

// ---------------------------------------------------------------- the page

CsvRows rows_of(std::vector<Candidates> const& bases) {
  CsvRows rows{{"base", "candidate", "pairs", "difference", "e", "p", "verdict", "stands"}};
  for (auto const& candidates : bases) {
    auto const stands = candidates.stands();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      auto const& e = candidates[i];
      rows.push_back({candidates.title(), e.name, fmt::format("{}", e.pairs),
                      e.difference ? fmt::format("{:.4g}", *e.difference) : "infinite", fmt::format("{:.4g}", e.e),
                      fmt::format("{:.2g}", e.p), e.verdict, stands[i] ? "yes" : "no"});
    }
  }
  return rows;
}

/// Evidence by candidate, in the order in which they were tried; filled dots stand.
Figure evidence_figure(std::string const& base, std::vector<CsvLine> const& lines, std::size_t number) {
  FigureLayer open{As::dots, {}, {.colour = line_colour(0), .open = true}}, filled{As::dots, {}, {.colour = line_colour(1)}};
  Range range{0.7, 30};
  for (auto const& line : lines) {
    auto& points = (line["stands"] == "yes" ? filled : open).points;
    double const x = static_cast<double>(open.points.size() + filled.points.size() + 1);
    points.push_back(CurvePoint::bare(x, std::max(line.number("e"), 1e-3)));
    range.include(points.back().y / 1.5);
    range.include(points.back().y * 1.5);
  }
  auto y = log_axis(range);
  y.name = "evidence E";
  Panel panel{.x = axis_over({0.5, static_cast<double>(lines.size()) + 0.5}, "candidate, in the order of trial"), .y = y};
  panel.layers = {open, filled};
  panel.guides = {{.at = 20, .dash = 2}};
  return {.name = fmt::format("ledger_{}", number),
          .title = "Evidence by candidate",
          .caption = "Evidence against no difference to " + base +
                     ". Dashed: 20, a verdict at 5 %. Filled: stands after e-BH at 5 % over all candidates of this base.",
          .panels = {panel},
          .shape = 0.45};
}

std::vector<StudyPart> present(StudyRecord const& record) {
  std::vector<StudyPart> parts;
  auto const all = csv_lines(record.csv, record.folder / "results.csv");
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    auto const& base = all[begin]["base"];
    while (end < all.size() && all[end]["base"] == base) ++end;
    std::vector<CsvLine> const lines(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
    parts.push_back({.title = base, .html = "", .figures = {evidence_figure(base, lines, parts.size() + 1)}});
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
  for (auto const& [key, value] : result.environment)
    if (key == "revision") revision = value;
  time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::vector<bool> Candidates::stands() const {
  auto stands = standing(mapped(*this, &LedgerEntry::e));
  for (std::size_t i = 0; i < size(); ++i) stands[i] = stands[i] && (*this)[i].has_verdict();
  return stands;
}

std::string Candidates::title() const { return fmt::format("{} {}, {}", front().base_name, front().base.substr(0, 8), front().metric); }

std::string Candidates::in_words() const {
  auto const verdicts = static_cast<std::size_t>(std::ranges::count_if(*this, &LedgerEntry::has_verdict));
  auto const stand = std::ranges::count(stands(), true);
  auto const text = fmt::format("{} tried against this base", plural(size(), "candidate"));
  if (verdicts == 0) return text + ", no verdict";
  return text +
         fmt::format(": of {} {} after e-BH at 5 %", plural(verdicts, "verdict"), stand == 1 ? "1 stands" : fmt::format("{} stand", stand));
}

std::vector<Candidates> read_ledger(fs::path const& path) {
  std::vector<Candidates> bases;
  std::istringstream text(read_if_there(path).value_or(""));
  std::string line;
  for (std::size_t number = 1; std::getline(text, line); ++number) try {
      auto const entry = entry_of(Json::parse(line));
      auto base = std::ranges::find_if(bases, [&](Candidates const& each) { return each.are_like(entry); });
      if (base == bases.end()) base = bases.emplace(bases.end());
      auto const same = std::ranges::find(*base, entry.candidate, &LedgerEntry::candidate);
      if (same == base->end())
        base->push_back(entry);
      else
        *same = entry;
    } catch (Json::exception const& error) {
      throw FileError(fmt::format("{}:{}: is no line of a ledger: {}", path.string(), number, error.what()));
    }
  return bases;
}

void append(fs::path const& path, LedgerEntry const& entry) {
  auto const lock = FolderLock::attempt(path.parent_path(), ".judge.lock", FolderLock::LockMode::alone, std::chrono::seconds(60));
  if (!lock) throw Error(fmt::format("{}: another process has held its lock for a minute", path.string()));
  write_atomically(path, read_if_there(path).value_or("") + json_of(entry).dump() + "\n");  // so that no line is ever cut
}

std::optional<std::size_t> pairs_to_stand(Candidates const& candidates, LedgerEntry const& entry, Judgement const& judgement) {
  auto const stands = candidates.stands();
  auto const own = std::ranges::find(candidates, entry.candidate, &LedgerEntry::candidate) - candidates.begin();
  if (!entry.has_verdict() || stands[static_cast<std::size_t>(own)]) return std::nullopt;
  auto const others = static_cast<double>(std::ranges::count(stands, true));
  auto const enough = pairs_that_tell(judgement.differences, 20 * static_cast<double>(candidates.size()) / (others + 1));
  return enough && *enough > entry.pairs ? std::optional(*enough - entry.pairs) : std::nullopt;
}

Exit show_ledger(JudgeOptions const& options) {
  fs::path const path = options.folders.output / "judge.jsonl", folder = options.folders.output / "judge-ledger";
  auto const bases = read_ledger(path);
  if (bases.empty()) throw FileError(fmt::format("{}: there is no candidate in it: heed judge BASE CANDIDATE adds one", path.string()));
  auto const rows = rows_of(bases);
  Json summary{{"study", "ledger"}, {"name", "judge-ledger"}, {"finished", true}, {"environment", environment()}};
  for (auto const& candidates : bases) summary["sentences"].push_back(candidates.title() + ": " + candidates.in_words());
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
