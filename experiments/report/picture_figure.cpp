#include "experiments/report/picture_figure.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "autograd/ops/reduce.hpp"
#include "experiments/config/table.hpp"
#include "nn/files/atomic_file.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

/// Sizes in inches and pixels, and what lies where.
struct Panels {
  explicit Panels(LookedAt const& looked)
      : height(looked.pixels.size(1)), width(looked.pixels.size(2)), rows(looked.weights.size(1) / looked.across), across(looked.across) {
    high = wide * static_cast<double>(height) / static_cast<double>(width);
    down = (std::ssize(looked.words) + 1 + columns - 1) / columns;
  }
  double row() const { return high + 0.26; }
  double figure_height() const { return static_cast<double>(down) * row() + 0.05; }
  std::int64_t field(std::int64_t y, std::int64_t x) const { return y * rows / height * across + x * across / width; }

  static constexpr std::int64_t columns = 5;
  static constexpr double gap = 0.12, wide = (Figure::width - (columns + 1) * gap) / columns;
  std::int64_t height, width, rows, across;
  double high;
  std::int64_t down;
};

/// "x y red green blue" of every pixel, as bright as shares say, which are of fields.
std::string pixels_of(LookedAt const& looked, Panels const& panels, std::vector<double> const& shares) {
  auto const levels = looked.pixels.data<std::int64_t>();
  auto const brightest = static_cast<double>(std::max<std::int64_t>(1, std::ranges::max(levels)));
  std::int64_t const size = panels.height * panels.width;
  std::string text;
  for (std::int64_t i = 0; i < size; ++i) {
    std::int64_t const y = i / panels.width, x = i % panels.width;
    double const factor = 255 * (0.25 + 0.75 * shares[static_cast<std::size_t>(panels.field(y, x))]) / brightest;
    text += fmt::format("{} {}", x, y);
    for (std::int64_t c = 0; c < 3; ++c)
      text += fmt::format(
          " {:.0f}", factor * static_cast<double>(levels[static_cast<std::size_t>(std::min(c, looked.pixels.size(0) - 1) * size + i)]));
    text += "\n";
  }
  return text;
}

/// A frame around a field.
std::string frame(Panels const& panels, std::int64_t field) {
  double const w = static_cast<double>(panels.width) / static_cast<double>(panels.across),
               h = static_cast<double>(panels.height) / static_cast<double>(panels.rows);
  double const left = static_cast<double>(field % panels.across) * w - 0.5, top = static_cast<double>(field / panels.across) * h - 0.5;
  return fmt::format("set object 1 rectangle from {:.4g},{:.4g} to {:.4g},{:.4g} front fs empty border lc rgb '#D55E00' lw 1.5\n", left,
                     top, left + w, top + h);
}

std::string panel(LookedAt const& looked, Panels const& panels, std::int64_t number) {
  std::vector<double> shares(static_cast<std::size_t>(looked.weights.size(1)), 1.0);
  std::string commands = "unset object 1\n";
  std::string title = "the picture";
  if (number > 0) {
    auto const weights = looked.weights.rows(number - 1, 1).to_vector();
    auto const most = std::ranges::max_element(weights);
    for (std::size_t i = 0; i < weights.size(); ++i) shares[i] = *most > 0 && std::isfinite(weights[i]) ? weights[i] / *most : 0;
    commands = frame(panels, most - weights.begin());
    title = cut(looked.words[static_cast<std::size_t>(number - 1)], 16);
  }
  double const x = Panels::gap + static_cast<double>(number % Panels::columns) * (Panels::wide + Panels::gap);
  double const bottom = panels.figure_height() - static_cast<double>(number / Panels::columns + 1) * panels.row();
  commands += fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\nset bmargin at screen {:.5f}\nset tmargin at screen {:.5f}\n",
      x / Figure::width, (x + Panels::wide) / Figure::width, bottom / panels.figure_height(),
      (bottom + panels.high) / panels.figure_height());
  commands += fmt::format("set label 1 {} at screen {:.5f}, screen {:.5f} center\n", gnuplot_text(title),
                          (x + Panels::wide / 2) / Figure::width, (bottom + panels.high + 0.11) / panels.figure_height());
  return fmt::format("$p{} << EOD\n{}EOD\n", number, pixels_of(looked, panels, shares)) + commands +
         fmt::format("plot $p{} with rgbimage\n", number);
}

}  // namespace

LookedAt looked_at(Looks const& looks) {
  for (auto const& layer : looks.layers) {
    auto const& of = layer.of;
    Tensor const& weights = layer.weights;
    auto const part = std::ranges::find(looks.parts, of.keys, &Looks::Part::name);
    if (of.across == 0 || part == looks.parts.end() || !part->pixels.defined()) continue;
    Tensor const& all = part->pixels;
    auto words = looks.axis(of.queries, 0, weights.size(2));
    words.erase(words.begin());
    words.emplace_back("<eos>");
    return {all.rows(0, 1).viewed({all.size(1), all.size(2), all.size(3)}), std::move(words), mean(weights.rows(0, 1), {0, 1}), of.across};
  }
  return {};
}

Figure picture_figure(LookedAt const& looked) {
  Panels const panels(looked);
  std::string commands =
      fmt::format("set border lw 0.4\nset key off\nunset xtics\nunset ytics\nset xrange [-0.5:{}]\nset yrange [{}:-0.5]\nset multiplot\n",
                  static_cast<double>(panels.width) - 0.5, static_cast<double>(panels.height) - 0.5);
  for (std::int64_t number = 0; number <= std::ssize(looked.words); ++number) commands += panel(looked, panels, number);
  std::vector<std::string> const words(looked.words.begin(), looked.words.end() - 1);
  return {.name = "looked_at",
          .title = fmt::format("{}", fmt::join(words, " ")),
          .caption =
              "The picture, and where each word of its caption looked when it was written: fields are as bright as their weights, of the "
              "largest, which is framed.",
          .height = panels.figure_height(),
          .commands = commands + "unset multiplot\n"};
}

std::string picture_table(LookedAt const& looked) {
  std::size_t widest = 0;
  for (auto const& word : looked.words) widest = std::max(widest, columns(word));
  std::string page;
  std::int64_t const fields = looked.weights.size(1);
  for (std::size_t word = 0; word < looked.words.size(); ++word) {
    for (std::int64_t field = 0; field < fields; ++field) {
      if (field % looked.across == 0) {
        std::string const name = field == 0 ? looked.words[word] : "";
        page += fmt::format("{}  {}{}", field > 0 ? "\n" : "", name, std::string(widest - columns(name) + 1, ' '));
      }
      double const weight = looked.weights.at(static_cast<std::int64_t>(word) * fields + field);
      page += weight == 0 ? "   ·" : fmt::format(" {:3.0f}", 100 * weight);
    }
    page += "\n\n";
  }
  return page;
}

void write_picture(fs::path const& file, LookedAt const& looked) {
  auto const drawings = draw({picture_figure(looked)}, file.extension() == ".png");
  if (!drawings) throw Error(fmt::format("{}: gnuplot, which draws it, is not installed: apt-get install gnuplot-nox", file.string()));
  auto const& drawing = drawings->front();
  write_atomically(file, file.extension() == ".svg" ? drawing.svg : file.extension() == ".pdf" ? drawing.pdf : drawing.png);
}

}  // namespace heed
