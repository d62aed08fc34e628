#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "autograd/registry.hpp"
#include "experiments/folder/csv.hpp"
#include "experiments/report/figure.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// A table of text with a title; the first row is the header.
struct StudyTable {
  std::string title;
  TableRows rows;
  bool detail = false;  ///< only in summary.md, not in the terminal or on the page
};

/// The result of a study.
struct StudyResult {
  CsvRows csv = {};                                          ///< results.csv, its header first
  std::vector<StudyTable> tables = {};                       ///< for the terminal and summary.md
  std::vector<std::string> sentences = {};                   ///< the findings in words
  std::vector<std::pair<std::string, double>> figures = {};  ///< for summary.json
};

/// A finished study, as it is in its folder.
struct StudyRecord : StudyResult {
  std::filesystem::path folder = {};
  std::string kind = {}, name = {};
  std::string configuration = {};  ///< YAML
  double seconds = 0;
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< of what is read
};

/// Reads a finished study. Throws FileError for a missing or damaged summary.json or results.csv.
StudyRecord read_study(std::filesystem::path const& folder);
/// Writes results.csv, summary.md, summary.json, with these further members, and the report. Returns tables and sentences for the terminal.
/// Throws Error for a table of uneven rows.
std::string write_study(StudyRecord const& study, nlohmann::ordered_json const& more);

/// A part of a page: its figures, the HTML after them, and warnings.
struct StudyPart {
  std::string title, html;
  std::vector<Figure> figures;
  std::vector<std::string> sentences = {};
};

/// How a kind of study makes its page; `present` may be absent. It throws FileError for a results.csv of another format.
struct StudyPage {
  std::string name, help;
  std::function<std::vector<StudyPart>(StudyRecord const&)> present;
};

/// Parts that a higher-level folder declares for the page of a run or an ablation.
struct AddedParts {
  int order;                                                    ///< among the others
  std::function<std::vector<StudyPart>(Material const&)> make;  ///< gives none if they do not apply
};

}  // namespace heed
