#pragma once

#include <cstddef>
#include <string>
#include <string_view>
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
  bool running = true;                ///< trials that have not ended may be in training: the page refreshes itself
  std::string results = {};           ///< SHA-256 of its summary.json; empty without one
};

/// How a page records which results a chapter shows; empty if it does not.
std::string results_mark(Chapter const& chapter);

/// A self-contained page: styles, figures, data and scripts are inline, and its policy forbids network access.
std::string page(std::vector<Chapter> const& chapters);

/// Attention maps for the page's viewer, as JSON, from attention/step-*.npz of one trial an arm (its first seed that has some):
///   {"texts": [[token, …], …], "pictures": [{"channels", "height", "width", "pixels"}, …],
///    "arms": [{"name", "seed", "steps": [{"step", "examples": [{PART: {"text": index into texts, "length": of the whole},
///                                                               PART: {"picture": index into pictures}}, …],
///                                         "layers": [{"name", "of": [PART, PART], "across", "heads", "queries", "keys",
///                                                     "places": [n, m], "peaks", "weights"}, …]}, …]}, …]}
/// `of`: the parts of a layer's queries and keys; `queries` and `keys`: how many of the n and m are included. `weights`: bytes in base64,
/// [example, head, query, key], each (byte / 255)² of its map's peak; `peaks` [example, head]. `pixels`: bytes, channel by channel;
/// `across`: picture fields (keys) per row. At most `budget` bytes: steps and then examples are thinned out and texts cut until it fits.
/// Empty if there are no maps; a damaged file becomes a warning of the material.
std::string attention_maps(Material& material, std::size_t budget);

std::string base64(std::string_view bytes);

}  // namespace heed
