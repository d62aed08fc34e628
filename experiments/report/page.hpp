#pragma once

#include <string>
#include <vector>

#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"
#include "experiments/report/parts.hpp"

namespace heed {

/// What a page shows of a study beside its sentences.
struct StudyChapter {
  std::string kind, help;  ///< empty: no study
  double seconds = 0;
  std::vector<StudyTable> tables;
};

/// What a page shows of one ablation, run or study.
struct Chapter {
  Material material;
  std::vector<Figure> figures;
  std::vector<std::string> drawings;  ///< SVG of each figure; none of what is `undrawn`
  std::string maps;                   ///< attention_maps(); may be empty
  StudyChapter study = {};
  std::vector<StudyPart> parts = {};  ///< their figures are the chapter's too
  std::string undrawn = {};           ///< why none of its figures is drawn; empty if they are
  std::string results = {};           ///< SHA-256 of its summary.json; empty without one
};

/// How a page marks a chapter as being of its results; empty where it does not say of which.
std::string results_mark(Chapter const& chapter);

/// A page that needs nothing beside itself: styles, figures, data and programs are in it, and its policy forbids it to fetch anything.
std::string page(std::vector<Chapter> const& chapters);

/// The tables of a single run as HTML: the last value of each metric, and beside them what baselines and known losses reach.
std::string run_tables(Material const& material);

}  // namespace heed
