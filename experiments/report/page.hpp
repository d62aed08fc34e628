#pragma once

#include <string>
#include <vector>

#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"
#include "experiments/report/parts.hpp"

namespace heed {

/// A page's content for one ablation, run or study.
struct Chapter {
  Material material;
  std::vector<Figure> figures;
  std::vector<Drawing> drawings;      ///< of each figure; none if `undrawn`
  std::string maps;                   ///< attention_maps(); may be empty
  StudyRecord study = {};             ///< without a kind: not a study
  std::string help = {};              ///< what the kind of study is
  std::vector<StudyPart> parts = {};  ///< their figures belong to the chapter
  std::string undrawn = {};           ///< why figures could not be drawn; empty if they were
  std::string results = {};           ///< SHA-256 of its summary.json; empty without one
};

/// How a page records which results a chapter shows; empty if it does not.
std::string results_mark(Chapter const& chapter);

/// A self-contained page: styles, figures, data and scripts are inline, and its policy forbids network access.
std::string page(std::vector<Chapter> const& chapters);

}  // namespace heed
