#include "experiments/report/text_figure.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/config/table.hpp"
#include "experiments/report/gnuplot.hpp"

namespace heed {

namespace {

/// `room`: of a token, in inches; with too little tokens are numbered.
Axis axis_of_tokens(std::vector<std::string> tokens, double room, bool rows) {
  for (auto& token : tokens) token = cut(token, 12);
  Axis axis = rows ? axis_of_rows(tokens, "queries") : axis_of_names(tokens, "keys");
  axis.above = !rows;
  if (room < 0.1) axis.ticks.clear(), axis.step = tick_step(std::max(axis.low, axis.high), 5);
  return axis;
}

Figure layer_figure(AttentionMaps const& attention, std::size_t number, Index first, Index end) {
  auto const& layer = attention.layers[number];
  Index const queries = layer.weights.size(2), keys = layer.weights.size(3);
  double const longest = static_cast<double>(std::max(queries, keys)), room = 4.7;  // inches beside the labels of rows
  auto const across = std::clamp<Index>(static_cast<Index>(room / (std::min(longest, 20.0) * 0.105 + 0.15)), 1, end - first);
  double const side = std::min(room / static_cast<double>(across) - 0.15, 0.26 * static_cast<double>(keys));
  double const cell = side / static_cast<double>(keys);
  Figure figure{.name = fmt::format("layer{}", number),
                .title = attention.only_inputs() ? fmt::format("layer {}", number) : fmt::format("layer {}: {}", number, layer.layer),
                .caption = "Attention weights of one sequence: rows are queries, columns keys.",
                .across = static_cast<std::size_t>(across),
                .scales = {{.colours = {"#F5F6F8", "#9CCBE8", "#2178B4", "#08254D"}, .high = 1e-6, .name = "weight"}},
                .shared_y = true,
                .frame_width = side,
                .shape = static_cast<double>(queries) / static_cast<double>(keys)};
  Tensor const maps = layer.weights.viewed({layer.weights.size(1), queries, keys});
  for (Index head = first; head < end; ++head) {
    auto weights = maps.rows(head, 1).to_vector();
    for (double const weight : weights)
      if (std::isfinite(weight)) figure.scales.front().high = std::max(figure.scales.front().high, weight);
    figure.panels.push_back(
        {.title = fmt::format("layer {}, head {}", number, head),
         .x = axis_of_tokens(attention.axis(layer.of.keys, 0, keys), cell, false),
         .y = axis_of_tokens(attention.axis(layer.of.queries, 0, queries), cell, true),
         .cells = Cells{.columns = static_cast<std::size_t>(keys), .values = std::move(weights), .sharp = queries * keys < 2500}});
  }
  return figure;
}

}  // namespace

std::vector<Figure> text_figures(AttentionMaps const& attention, std::optional<std::pair<Index, Index>> only) {
  auto const layers = std::ssize(attention.layers);
  if (only && only->first >= layers) throw Error(fmt::format("there is no layer {}: there are {}, from 0 on", only->first, layers));
  std::vector<Figure> figures;
  for (Index layer = 0; layer < layers; ++layer) {
    Index const heads = at(attention.layers, layer).weights.size(1);
    if (only && only->first != layer) continue;
    if (only && only->second >= heads)
      throw Error(fmt::format("layer {} has no head {}: there are {}, from 0 on", layer, only->second, heads));
    figures.push_back(layer_figure(attention, static_cast<std::size_t>(layer), only ? only->second : 0, only ? only->second + 1 : heads));
  }
  return figures;
}

void write_maps(std::filesystem::path const& file, std::string const& title, std::vector<Figure> figures) {
  if (figures.empty()) throw Error("there are no attention weights to draw");
  if (file.extension() != ".html" && figures.size() > 1) {
    Figure all = std::move(figures.front());
    for (std::size_t i = 1; i < figures.size(); ++i) {
      std::ranges::move(figures[i].panels, std::back_inserter(all.panels));
      all.scales.front().high = std::max(all.scales.front().high, figures[i].scales.front().high);
    }
    figures = {std::move(all)};
  }
  write_figures(file, figures, title);
}

}  // namespace heed
