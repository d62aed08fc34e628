#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/registry.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// Lines of text with a title; the first row is the head.
struct StudyTable {
  std::string title;
  std::vector<std::vector<std::string>> rows;
  bool detail = false;  ///< for summary.md, neither for the terminal nor for the page
};

/// A finished study as its folder holds it.
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

/// A part of a page: its figures, what follows them as HTML, and what is to be said of it.
struct StudyPart {
  std::string title, html;
  std::vector<Figure> figures;
  std::vector<std::string> sentences = {};
};

/// How the page of a kind of study is made; `present` may be absent. It throws FileError for a results.csv that is none of its own.
struct StudyPage {
  std::string name, help;
  std::function<std::vector<StudyPart>(StudyRecord const&)> present;
};

/// Parts that a room above declares for the page of a run or an ablation; none where it holds nothing that they show.
using AddedParts = std::function<std::vector<StudyPart>(Material const&)>;

}  // namespace heed
