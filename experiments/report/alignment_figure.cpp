#include "experiments/report/alignment_figure.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "autograd/ops/reduce.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/table.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/report/html.hpp"
#include "nn/files/atomic_file.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

constexpr double character_width = 0.072, line_height = 0.15;  // of a label, in inches
constexpr double title_height = 0.25, right_of_panel = 0.75;   // of a panel; for the colour box
constexpr std::size_t longest_label = 16;

double room_for(std::vector<std::string> const& labels) {
  std::size_t most = 0;
  for (auto const& label : labels) most = std::max(most, columns(cut(label, longest_label)));
  return 0.1 + character_width * static_cast<double>(most);
}

/// Places and names of an axis's ticks, so many places apart that they can be read.
std::string ticks(std::vector<std::string> const& labels, double distance) {
  std::string result;
  auto const every = static_cast<std::size_t>(std::max(1.0, std::ceil(0.8 * line_height / distance)));
  for (std::size_t i = 0; i < labels.size(); i += every)
    result += fmt::format("{}{} {}", i > 0 ? ", " : "", gnuplot_tick(cut(labels[i], longest_label)), i);
  return result;
}

PanelGrid layout_of(Alignment const& alignment) {
  auto const sources = static_cast<double>(alignment.source.size()), targets = static_cast<double>(alignment.target.size());
  constexpr double gap = 0.15;
  double const left = room_for(alignment.target), room = Figure::width - left - right_of_panel;
  auto const fitting = static_cast<std::size_t>((room + gap) / (sources * line_height + gap));
  std::size_t const across = std::clamp<std::size_t>(fitting, 1, alignment.layers.size());
  double const column = std::min(0.3, PanelGrid::width_between(left, right_of_panel, gap, across) / sources);
  return {.count = alignment.layers.size(),
          .across = across,
          .left = left,
          .gap = gap,
          .width = sources * column,
          .height = targets * std::clamp(column, line_height, 0.22),
          .head = 0.85 * room_for(alignment.source) + title_height,
          .below = 0.1,
          .decimals = 5};
}

std::string panel_commands(Alignment const& alignment, PanelGrid const& layout, std::size_t k) {
  std::string commands = layout.place(k);
  commands += layout.first_of_row(k) ? fmt::format("set ytics scale 0 ({})\n",
                                                   ticks(alignment.target, layout.height / static_cast<double>(alignment.target.size())))
                                     : "unset ytics\n";
  auto const title = fmt::format("layer {} of {}", k + 1, alignment.layers.size());
  auto const more = fmt::format("{}, mean of {} heads", title, alignment.layers[k].heads);
  commands += fmt::format("set label 1 {} at screen {:.5f}, screen {:.5f} center\n",
                          gnuplot_text(character_width * static_cast<double>(columns(more)) < layout.width ? more : title),
                          (layout.left_of(k) + layout.width / 2) / Figure::width,
                          (layout.top_of(k) + layout.head - title_height / 2) / layout.figure_height());
  if (k > 0) commands += "unset colorbox\n";
  return commands + fmt::format("plot $w{} matrix with image pixels\n", k);
}

std::string page_of(std::vector<Alignment> const& alignments, std::vector<Figure> const& figures, std::vector<Drawing> const& drawings) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" "
      "href=\"data:,\">\n<title>Attention of each target word – heed</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n<h1>Attention "
      "of each target word</h1>\n<p class=\"lead\">{}</p>\n",
      page_css, escape(figures.empty() ? "No line has words." : figures.front().caption));
  for (std::size_t i = 0; i < figures.size(); ++i)
    html += fmt::format(
        "<figure>\n<h3>Line {}: {}</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}</div>\n</figure>\n",
        alignments[i].line, escape(figures[i].title), escape(figures[i].title),
        inlined(drawings[i].svg, fmt::format("line{}", alignments[i].line), figures[i].title, figures[i].caption));
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace

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
  auto const layout = layout_of(alignment);
  double const height = layout.figure_height();
  auto const sources = static_cast<double>(alignment.source.size()), targets = static_cast<double>(alignment.target.size());
  double most = 1e-6;
  std::string commands;
  for (std::size_t k = 0; k < alignment.layers.size(); ++k) {
    auto const& weights = alignment.layers[k].weights;
    auto const values = weights.to_vector();
    commands += fmt::format("$w{} << EOD\n", k);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) most = std::max(most, values[i]);
      commands += fmt::format("{:.4g}{}", values[i], (i + 1) % alignment.source.size() == 0 ? "\n" : " ");
    }
    commands += "EOD\n";
  }
  double const box = std::min(1.4, layout.height);
  commands += fmt::format(
      "set palette defined (0 '#F5F6F8', 1 '#9CCBE8', 2 '#2178B4', 3 '#08254D')\nset border lw 0.4\nset key off\nset cbrange [0:{:.4g}]\n"
      "set xrange [-0.5:{}]\nset yrange [{}:-0.5]\nset format x ''\nset x2range [-0.5:{}]\nunset xtics\nset x2tics scale 0 rotate by 55 "
      "({})\n"
      "set colorbox user origin screen {:.4f}, screen {:.4f} size screen 0.022, screen {:.4f} noborder\nset cbtics {:.4g} scale 0.4 format "
      "'%g'\nset multiplot\n",
      most, sources - 0.5, targets - 0.5, sources - 0.5, ticks(alignment.source, layout.width / sources),
      (Figure::width - right_of_panel + 0.12) / Figure::width, (layout.top_of(0) - layout.height) / height, box / height,
      tick_step(most, 4));
  for (std::size_t k = 0; k < alignment.layers.size(); ++k) commands += panel_commands(alignment, layout, k);
  std::vector<std::string> const words(alignment.target.begin(), alignment.target.end() - 1);
  return {.name = "alignment",
          .title = fmt::format("{}", fmt::join(words, " ")),
          .caption = "Rows are target words, columns source words. Weights are means over the heads of each cross-attention layer.",
          .height = height,
          .commands = commands + "unset multiplot\n"};
}

void check_alignment_file(fs::path const& file) {
  auto const kind = file.extension();
  if (kind != ".html" && kind != ".svg" && kind != ".pdf" && kind != ".png")
    throw ConfigError("--attention", fmt::format("wants a file that ends in .html, .svg, .pdf or .png, but found '{}'", file.string()));
}

void write_alignments(fs::path const& file, std::vector<Alignment> const& alignments) {
  std::vector<Figure> figures;
  for (auto const& alignment : alignments) figures.push_back(alignment_figure(alignment));
  auto const kind = file.extension();
  auto const drawings = draw(figures, kind == ".png");
  if (!drawings) throw Error(fmt::format("{}: gnuplot, which draws it, is not installed: apt-get install gnuplot-nox", file.string()));
  if (kind == ".html") return write_atomically(file, page_of(alignments, figures, *drawings));
  for (std::size_t i = 0; i < alignments.size(); ++i) {
    auto path = file;
    if (alignments.size() > 1) path.replace_filename(fmt::format("{}-{}{}", file.stem().string(), alignments[i].line, kind.string()));
    auto const& drawing = (*drawings)[i];
    write_atomically(path, kind == ".svg" ? drawing.svg : kind == ".pdf" ? drawing.pdf : drawing.png);
  }
}

}  // namespace heed
