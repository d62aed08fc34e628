#pragma once

#include <string>
#include <vector>

#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// What a page shows of one ablation or run.
struct Chapter {
  Material material;
  std::vector<Figure> figures;
  std::vector<std::string> drawings;  ///< SVG of each figure; empty without gnuplot
  std::string maps;                   ///< attention_maps(); may be empty
};

/// A page that needs nothing beside itself: styles, figures, data and programs are in it, and its policy forbids it to fetch anything.
std::string page(std::vector<Chapter> const& chapters);

}  // namespace heed
