#include "experiments/report/alignment_figure.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/ops/reduce.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/table.hpp"
#include "experiments/report/gnuplot.hpp"

namespace heed {

Alignment alignment_of(AttentionMaps const& attention) {
  Alignment alignment;
  for (auto const& layer : attention.layers) {
    auto const& of = layer.of;
    Tensor const& weights = layer.weights;
    if (of.queries != "inputs" || of.keys != "source") continue;
    alignment.source = attention.axis(of.keys, 0, weights.size(3));
    alignment.target = attention.axis(of.queries, 0, weights.size(2));
    alignment.layers.push_back({weights.size(1), mean(weights.rows(0, 1), {0, 1})});
  }
  if (alignment.target.empty()) return alignment;
  alignment.target.erase(alignment.target.begin());
  alignment.target.emplace_back("<eos>");
  return alignment;
}

Figure alignment_figure(Alignment const& alignment) {
  auto const sources = static_cast<double>(alignment.source.size()), targets = static_cast<double>(alignment.target.size());
  constexpr double least_cell = 0.15;
  auto const across = std::clamp<std::size_t>(static_cast<std::size_t>(4 / (sources * least_cell + 0.15)), 1, alignment.layers.size());
  double const cell = std::min(0.3, 3.8 / static_cast<double>(across) / sources);
  Figure figure{.name = "alignment",
                .title = fmt::format("{}", fmt::join(alignment.target.begin(), alignment.target.end() - 1, " ")),
                .caption = "Rows are target words, columns source words. Weights are means over the heads of each cross-attention layer.",
                .across = across,
                .scales = {{.colours = {"#F5F6F8", "#9CCBE8", "#2178B4", "#08254D"}, .high = 1e-6, .name = "weight"}},
                .shared_y = true,
                .frame_width = sources * cell,
                .frame_height = targets * std::clamp(cell, least_cell, 0.22)};
  for (auto const& [heads, weights] : alignment.layers) {
    auto& panel = figure.panels.emplace_back(
        Panel{.title = fmt::format("layer {} of {}, mean of {} heads", figure.panels.size() + 1, alignment.layers.size(), heads),
              .x = axis_of_names(alignment.source, "source"),
              .y = axis_of_rows(alignment.target, "target"),
              .cells = Cells{.columns = alignment.source.size(), .values = weights.to_vector(), .sharp = true}});
    panel.x.above = true;
    for (double const weight : panel.cells->values)
      if (std::isfinite(weight)) figure.scales.front().high = std::max(figure.scales.front().high, weight);
  }
  return figure;
}

void write_alignments(fs::path const& file, std::vector<Alignment> const& alignments) {
  std::vector<Figure> figures;
  for (auto const& alignment : alignments) {
    figures.push_back(alignment_figure(alignment));
    figures.back().title = fmt::format("Line {}: {}", alignment.line, figures.back().title);
    figures.back().name = fmt::format("line{}", alignment.line);
  }
  write_figures(file, figures, "Attention of each target word", "No line has words.");
}

}  // namespace heed
