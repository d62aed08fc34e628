#include "experiments/report/study.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/run/csv.hpp"
#include "experiments/run/result_file.hpp"
#include "nn/files/input_file.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

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
      record.tables.push_back({table.at("title").get<std::string>(), table.at("rows").get<std::vector<std::vector<std::string>>>(),
                               table.value("detail", false)});
    record.environment = texts_at(json, "environment");
  } catch (std::exception const& error) {
    throw FileError(fmt::format("{}: is no summary of a study: {}", path.string(), error.what()));
  }
  auto const csv = read_if_there(folder / "results.csv");
  if (!csv)
    throw FileError(
        fmt::format("{}: cannot be read: no such file (heed run CONFIG --fresh measures anew)", (folder / "results.csv").string()));
  check_written(folder, "results.csv");
  record.csv = parse_csv(*csv);
  return record;
}

}  // namespace

bool holds_study(fs::path const& folder) {
  auto const summary = find_json(folder / "summary.json");
  return summary && summary->is_object() && summary->contains("study");
}

Chapter study_chapter(fs::path const& folder) {
  StudyRecord record = read_study(folder);
  Chapter chapter{.material = {}, .figures = {}, .drawings = {}, .maps = {}};
  auto const* const page = Registry<StudyPage>::find(record.kind);
  chapter.study = {.kind = record.kind, .help = page != nullptr ? page->help : record.kind, .seconds = record.seconds, .tables = {}};
  if (page != nullptr && page->present) chapter.parts = page->present(record);
  for (auto const& part : chapter.parts) chapter.figures.insert(chapter.figures.end(), part.figures.begin(), part.figures.end());
  chapter.study.tables = std::move(record.tables);
  chapter.material.folder = folder;
  chapter.material.name = std::move(record.name);
  chapter.material.sentences = std::move(record.sentences);
  chapter.material.environment = std::move(record.environment);
  chapter.material.configuration = std::move(record.configuration);
  return chapter;
}

}  // namespace heed
