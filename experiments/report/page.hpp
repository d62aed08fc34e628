#pragma once

#include <optional>
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
/// `vega`: the library that draws attention maps, see vega_program(); empty if it is not installed, and the page then has no viewer.
std::string page(std::vector<Chapter> const& chapters, std::string const& vega);

/// Vega's modules as they lie in Debian's libjs-vega, with what joins them to one object `vega`; nothing if one of them is missing.
std::optional<std::string> vega_program();

}  // namespace heed
