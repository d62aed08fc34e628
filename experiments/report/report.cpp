#include "experiments/report/report.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/config/table.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/report/page.hpp"
#include "experiments/report/parts.hpp"
#include "experiments/report/traces.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

/// The chapter of a finished study, from its summary.json and results.csv; its figures are not drawn yet.
Chapter study_chapter(fs::path const& folder) {
  Chapter chapter{.material = {}, .figures = {}, .drawings = {}, .maps = {}, .study = read_study(folder)};
  auto& record = chapter.study;
  auto const* const page = Registry<StudyPage>::find(record.kind);
  chapter.help = page != nullptr ? page->help : record.kind;
  if (page != nullptr && page->present) chapter.parts = page->present(record);
  for (auto const& part : chapter.parts) chapter.figures.insert(chapter.figures.end(), part.figures.begin(), part.figures.end());
  chapter.material.folder = folder;
  chapter.material.name = std::move(record.name);
  chapter.material.sentences = std::move(record.sentences);
  chapter.material.environment = std::move(record.environment);
  chapter.material.configuration = std::move(record.configuration);
  return chapter;
}

constexpr std::size_t map_bytes = 1'500'000;  ///< of a page, which stays below 3 MB

/// The drawings; without figures that gnuplot refuses, of which each becomes a warning. Throws Hanging, Interrupted.
std::optional<std::vector<Drawing>> drawn(Chapter& chapter) {
  auto const refused = [](std::vector<Figure> const& figures, std::optional<std::vector<Drawing>>& drawings) -> std::string {
    try {
      drawings = draw(figures, Beside::narrow);
      return "";
    } catch (Hanging const&) {
      throw;
    } catch (Interrupted const&) {
      throw;
    } catch (Error const& error) {
      return error.what();
    }
  };
  std::optional<std::vector<Drawing>> drawings;
  if (refused(chapter.figures, drawings).empty()) return drawings;
  std::erase_if(chapter.figures, [&](Figure const& figure) {
    auto const why = refused({figure}, drawings);
    if (!why.empty()) chapter.material.warnings.push_back(fmt::format("the figure '{}' is missing: {}", figure.title, why));
    return !why.empty();
  });
  return draw(chapter.figures, Beside::narrow);
}

/// Draws the figures, and leaves them in the folder.
void draw_figures(Chapter& chapter) {
  std::optional<std::vector<Drawing>> drawings;
  try {
    drawings = drawn(chapter);
  } catch (Hanging const& error) {
    chapter.undrawn = error.what();
    return;
  }
  if (!drawings) {
    if (!chapter.figures.empty()) chapter.undrawn = "gnuplot is not installed (apt-get install gnuplot-nox)";
    return;
  }
  fs::path const folder = chapter.material.folder / "figures";
  fs::create_directories(folder);
  for (std::size_t i = 0; i < drawings->size(); ++i) {
    write_atomically(folder / (chapter.figures[i].name + ".svg"), (*drawings)[i].svg);
    write_atomically(folder / (chapter.figures[i].name + ".pdf"), (*drawings)[i].pdf);
  }
  chapter.drawings = std::move(*drawings);
}

Chapter chapter_of(fs::path const& folder, std::size_t budget) {
  Chapter chapter;
  if (!in_summary(folder, "study").is_null()) {
    chapter = study_chapter(folder);
  } else {
    chapter.material = read_material(folder);
    chapter.maps = attention_maps(chapter.material, budget);
    chapter.figures = figures(chapter.material);
    for (auto const& added : Registry<AddedParts>::all())
      for (auto& part : added.make(chapter.material)) chapter.parts.push_back(std::move(part));
    for (auto& part : chapter.parts)
      for (auto& figure : part.figures) figure.name = "added_" + figure.name, chapter.figures.push_back(figure);
  }
  if (auto const summary = read_if_there(folder / "summary.json")) chapter.results = sha256(*summary);
  draw_figures(chapter);
  return chapter;
}

/// Whether a page was written after a folder's summary.
bool is_of_results(fs::path const& path, fs::path const& folder) {
  std::error_code missing;
  auto const written = fs::last_write_time(path, missing);
  return !missing && written >= fs::last_write_time(folder / "summary.json", missing) && !missing;
}

/// Whether an older page of the same results has figures, which the new one has not.
bool is_richer(fs::path const& path, std::vector<Chapter> const& chapters) {
  auto const old = read_if_there(path);
  auto const has = [&](std::string_view part) { return old && old->find(part) != std::string::npos; };
  if (!has("<svg role=")) return false;  // inlined()
  bool const marked = has(" data-results=");
  return std::ranges::all_of(chapters, [&](Chapter const& chapter) {
    return marked ? has(results_mark(chapter)) : is_of_results(path, chapter.material.folder);  // a page of an earlier revision
  });
}

/// Writes the page, unless it would only lose the figures of the one that is there. Prints the reason if figures cannot be drawn.
void write_page(fs::path const& path, std::vector<Chapter> const& chapters) {
  auto const undrawn = std::ranges::find_if(chapters, [](Chapter const& chapter) { return !chapter.undrawn.empty(); });
  bool const stays = undrawn != chapters.end() && is_richer(path, chapters);
  if (!stays) write_atomically(path, page(chapters));
  if (undrawn == chapters.end()) return;
  auto const again = fmt::format("{}; heed report {} draws them", undrawn->undrawn, path.parent_path().string());
  auto const line = stays ? fmt::format("{} keeps its figures and stays unchanged, because none can be drawn now: {}", path.string(), again)
                          : fmt::format("the report {} has no figures: {}", path.string(), again);
  fmt::print(stderr, "heed: {}\n", line);
}

/// Runs on one page that have read a file with different contents are no comparison: each says so.
void warn_of_other_contents(std::vector<Chapter>& chapters) {
  std::map<std::string, std::set<std::string>> contents;
  for (auto const& chapter : chapters)
    for (auto const& [file, sha256] : chapter.material.read) contents[file].insert(sha256);
  for (auto& chapter : chapters)
    for (auto const& [file, sha256] : chapter.material.read)
      if (contents[file].size() > 1)
        chapter.material.warnings.push_back(fmt::format("the results on this page read {} with {} different contents; here with SHA-256 {}",
                                                        file, contents[file].size(), sha256));
}

}  // namespace

StudyRecord read_study(fs::path const& folder) {
  fs::path const path = folder / "summary.json";
  auto const json = read_json(path);
  StudyRecord record;
  record.folder = folder;
  try {
    record.kind = json.at("study").get<std::string>();
    record.name = json.at("name").get<std::string>();
    record.sentences = json.value("sentences", record.sentences);
    record.configuration = json.value("configuration", "");
    record.seconds = json.value("time.seconds", 0.0);
    for (auto const& table : json.value("tables", nlohmann::ordered_json::array()))
      record.tables.push_back({table.at("title").get<std::string>(), table.at("rows").get<TableRows>(), table.value("detail", false)});
    record.environment = texts_at(json, "environment");
  } catch (std::exception const& error) {
    throw FileError(fmt::format("{}: is not a summary of a study: {}", path.string(), error.what()));
  }
  auto const csv = read_if_there(folder / "results.csv");
  if (!csv)
    throw FileError(
        fmt::format("{}: cannot be read: no such file (heed run CONFIG --fresh measures anew)", (folder / "results.csv").string()));
  check_written(folder, "results.csv");
  record.csv = parse_csv(*csv);
  return record;
}

std::string write_study(StudyRecord const& study, nlohmann::ordered_json const& more) {
  nlohmann::ordered_json summary{{"study", study.kind}, {"name", study.name}, {"finished", true}};
  for (auto const& [key, value] : more.items()) summary[key] = value;
  for (auto const& [name, value] : study.figures) summary["figures"][name] = number(value);
  summary["sentences"] = study.sentences;
  std::string page = fmt::format("# {}\n", study.name), text;
  for (auto const& sentence : study.sentences) page += fmt::format("\n{}\n", sentence);
  for (auto const& [title, rows, detail] : study.tables) {
    for (auto const& row : rows)
      if (row.size() != rows.front().size())
        throw Error(fmt::format("the table '{}' has a row of {} cells under {} headings", title, row.size(), rows.front().size()));
    summary["tables"].push_back({{"title", title}, {"rows", rows}, {"detail", detail}});
    page += fmt::format("\n## {}\n\n{}", title, markdown_table(rows));
    if (!detail) text += fmt::format("{}\n{}\n", title, table(rows));
  }
  if (study.seconds > 0) summary["time.seconds"] = study.seconds;
  if (!summary.contains("environment")) summary["environment"] = environment();
  if (!study.configuration.empty()) summary["configuration"] = study.configuration;
  fs::create_directories(study.folder);
  write_atomically(study.folder / "results.csv", csv_text(study.csv));
  write_atomically(study.folder / "summary.md", page);
  write_summary(study.folder, summary, {"results.csv", "summary.md"});
  write_report(study.folder, true);
  for (auto const& sentence : study.sentences) text += sentence + "\n";
  return text;
}

void write_report(fs::path const& folder, bool quiet, bool running) {
  std::vector<Chapter> chapters;
  chapters.push_back(chapter_of(folder, map_bytes));
  chapters.front().running = running;
  write_page(folder / "report.html", chapters);
  if (!quiet) fmt::print("  {}\n", (folder / "report.html").string());
}

bool has_report(fs::path const& folder) { return is_of_results(folder / "report.html", folder); }

void write_report(std::vector<fs::path> const& folders, fs::path const& path, bool quiet) {
  auto chapters = mapped(folders, [&](fs::path const& folder) { return chapter_of(folder, map_bytes / folders.size()); });
  warn_of_other_contents(chapters);
  fs::create_directories(path.parent_path());
  write_page(path, chapters);
  if (!quiet) fmt::print("  {}\n", path.string());
}

}  // namespace heed
