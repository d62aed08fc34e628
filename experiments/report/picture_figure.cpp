#include "experiments/report/picture_figure.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "autograd/ops/reduce.hpp"
#include "experiments/config/table.hpp"
#include "experiments/report/gnuplot.hpp"
#include "nn/files/atomic_file.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

/// Sizes in pixels, and where the pictures stand.
struct PicturePanels {
  explicit PicturePanels(ImageAttention const& image)
      : height(image.pixels.size(1)), width(image.pixels.size(2)), rows(image.weights.size(1) / image.across), across(image.across) {
    constexpr double gap = 0.12;
    constexpr std::size_t columns = 5;
    double const wide = PanelGrid::width_between(gap, gap, gap, columns);
    grid = {.count = image.words.size() + 1,
            .across = columns,
            .left = gap,
            .gap = gap,
            .width = wide,
            .height = wide * static_cast<double>(height) / static_cast<double>(width),
            .head = 0.26,
            .below = 0.05,
            .decimals = 5};
  }
  Index field(Index y, Index x) const { return y * rows / height * across + x * across / width; }

  Index height, width, rows, across;
  PanelGrid grid;
};

/// "x y red green blue" of every pixel, as bright as shares say, which are of fields.
std::string pixels_of(ImageAttention const& image, PicturePanels const& panels, std::vector<double> const& shares) {
  auto const levels = image.pixels.data<std::int64_t>();
  auto const brightest = static_cast<double>(std::max<Index>(1, std::ranges::max(levels)));
  Index const size = panels.height * panels.width;
  std::string text;
  for (Index i = 0; i < size; ++i) {
    Index const y = i / panels.width, x = i % panels.width;
    double const factor = 255 * (0.25 + 0.75 * at(shares, panels.field(y, x))) / brightest;
    text += fmt::format("{} {}", x, y);
    for (Index c = 0; c < 3; ++c)
      text += fmt::format(" {:.0f}", factor * static_cast<double>(at(levels, std::min(c, image.pixels.size(0) - 1) * size + i)));
    text += "\n";
  }
  return text;
}

/// A frame around a field.
std::string frame(PicturePanels const& panels, Index field) {
  double const w = static_cast<double>(panels.width) / static_cast<double>(panels.across),
               h = static_cast<double>(panels.height) / static_cast<double>(panels.rows);
  double const left = static_cast<double>(field % panels.across) * w - 0.5, top = static_cast<double>(field / panels.across) * h - 0.5;
  return fmt::format("set object 1 rectangle from {:.4g},{:.4g} to {:.4g},{:.4g} front fs empty border lc rgb '#D55E00' lw 1.5\n", left,
                     top, left + w, top + h);
}

std::string panel(ImageAttention const& image, PicturePanels const& panels, Index number) {
  std::vector<double> shares(static_cast<std::size_t>(image.weights.size(1)), 1.0);
  std::string commands = "unset object 1\n";
  std::string title = "the picture";
  if (number > 0) {
    auto const weights = image.weights.rows(number - 1, 1).to_vector();
    auto const most = std::ranges::max_element(weights);
    for (std::size_t i = 0; i < weights.size(); ++i) shares[i] = *most > 0 && std::isfinite(weights[i]) ? weights[i] / *most : 0;
    commands = frame(panels, most - weights.begin());
    title = cut(at(image.words, number - 1), 16);
  }
  auto const& grid = panels.grid;
  auto const place = static_cast<std::size_t>(number);
  commands += grid.place(place) + fmt::format("set label 1 {} at screen {:.5f}, screen {:.5f} center\n", gnuplot_text(title),
                                              (grid.left_of(place) + grid.width / 2) / Figure::width,
                                              (grid.top_of(place) + 0.11) / grid.figure_height());
  return fmt::format("$p{} << EOD\n{}EOD\n", number, pixels_of(image, panels, shares)) + commands +
         fmt::format("plot $p{} with rgbimage\n", number);
}

}  // namespace

ImageAttention image_attention(AttentionMaps const& attention) {
  for (auto const& layer : attention.layers) {
    auto const& of = layer.of;
    Tensor const& weights = layer.weights;
    auto const part = std::ranges::find(attention.parts, of.keys, &AttentionMaps::LabelledPart::name);
    if (of.across == 0 || part == attention.parts.end() || !part->pixels.defined()) continue;
    Tensor const& all = part->pixels;
    auto words = attention.axis(of.queries, 0, weights.size(2));
    words.erase(words.begin());
    words.emplace_back("<eos>");
    return {all.rows(0, 1).viewed({all.size(1), all.size(2), all.size(3)}), std::move(words), mean(weights.rows(0, 1), {0, 1}), of.across};
  }
  return {};
}

Figure picture_figure(ImageAttention const& image) {
  PicturePanels const panels(image);
  std::string commands =
      fmt::format("set border lw 0.4\nset key off\nunset xtics\nunset ytics\nset xrange [-0.5:{}]\nset yrange [{}:-0.5]\nset multiplot\n",
                  static_cast<double>(panels.width) - 0.5, static_cast<double>(panels.height) - 0.5);
  for (Index number = 0; number <= std::ssize(image.words); ++number) commands += panel(image, panels, number);
  std::vector<std::string> const words(image.words.begin(), image.words.end() - 1);
  return {.name = "looked_at",
          .title = fmt::format("{}", fmt::join(words, " ")),
          .caption =
              "The image, and the attention map of each word of its caption: brightness is the weight relative to the largest, which is "
              "framed.",
          .height = panels.grid.figure_height(),
          .commands = commands + "unset multiplot\n"};
}

std::string picture_table(ImageAttention const& image) {
  std::size_t widest = 0;
  for (auto const& word : image.words) widest = std::max(widest, columns(word));
  std::string page;
  Index const fields = image.weights.size(1);
  for (std::size_t word = 0; word < image.words.size(); ++word) {
    for (Index field = 0; field < fields; ++field) {
      if (field % image.across == 0) {
        std::string const name = field == 0 ? image.words[word] : "";
        page += fmt::format("{}  {}{}", field > 0 ? "\n" : "", name, std::string(widest - columns(name) + 1, ' '));
      }
      double const weight = image.weights.at(static_cast<Index>(word) * fields + field);
      page += weight == 0 ? "   ·" : fmt::format(" {:3.0f}", 100 * weight);
    }
    page += "\n\n";
  }
  return page;
}

void write_picture(fs::path const& file, ImageAttention const& image) {
  auto const drawings = draw({picture_figure(image)}, file.extension() == ".png");
  if (!drawings) throw Error(fmt::format("{}: gnuplot, which draws it, is not installed: apt-get install gnuplot-nox", file.string()));
  auto const& drawing = drawings->front();
  write_atomically(file, file.extension() == ".svg" ? drawing.svg : file.extension() == ".pdf" ? drawing.pdf : drawing.png);
}

}  // namespace heed
