#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/registry.hpp"
#include "experiments/report/figure.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// A table of text with a title; the first row is the header.
struct StudyTable {
  std::string title;
  std::vector<std::vector<std::string>> rows;
  bool detail = false;  ///< only in summary.md, not in the terminal or on the page
};

/// A finished study, read from its folder.
struct StudyRecord {
  std::filesystem::path folder;
  std::string kind, name;
  std::vector<std::vector<std::string>> csv;  ///< results.csv, its header first
  std::vector<StudyTable> tables;
  std::vector<std::string> sentences;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string configuration;  ///< YAML
  double seconds = 0;
};

/// Reads a finished study. Throws FileError for a missing or damaged summary.json or results.csv.
StudyRecord read_study(std::filesystem::path const& folder);

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
