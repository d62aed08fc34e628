// Coloured glyphs on a grid, and what they are in reading order. Of two rows and three columns:
//
//     .    ●    ■        (green, blue)
//     ▲    .    .        (red)
//
//     green circle blue square red triangle
//
// Each glyph has a size and a position within its cell of its own, its edges are smooth, and every pixel is a little off. With
// `tells: [place, colour, shape]` a caption begins a2 green circle …: row a, column 2.

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "experiments/data/pictures/picture_task.hpp"
#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct Colour {
  char const* name;
  std::array<double, 3> light;  // red, green, blue, of 255
};
constexpr std::array<Colour, 8> colours{{{"red", {230, 50, 50}},
                                         {"green", {60, 200, 80}},
                                         {"blue", {70, 110, 250}},
                                         {"yellow", {240, 220, 60}},
                                         {"violet", {190, 80, 220}},
                                         {"white", {245, 245, 245}},
                                         {"orange", {250, 150, 40}},
                                         {"cyan", {70, 220, 230}}}};

/// Whether (x, y) is in a shape of radius 1 around the origin, y downwards.
struct GlyphShape {
  char const* name;
  bool (*holds)(double x, double y);
};
constexpr std::array<GlyphShape, 8> shapes{{
    {"circle", [](double x, double y) { return x * x + y * y < 1; }},
    {"square", [](double x, double y) { return std::max(std::abs(x), std::abs(y)) < 0.85; }},
    {"triangle", [](double x, double y) { return y < 0.8 && y > -1 + 1.8 * std::abs(x); }},
    {"cross", [](double x, double y) { return std::min(std::abs(x), std::abs(y)) < 0.33 && std::max(std::abs(x), std::abs(y)) < 1; }},
    {"ring", [](double x, double y) { return x * x + y * y < 1 && x * x + y * y > 0.3; }},
    {"diamond", [](double x, double y) { return std::abs(x) + std::abs(y) < 1; }},
    {"bar", [](double x, double y) { return std::abs(x) < 0.3 && std::abs(y) < 1; }},
    {"plank", [](double x, double y) { return std::abs(y) < 0.3 && std::abs(x) < 1; }},
}};

/// "a2": row a, column 2.
std::string cell_name(Index row, Index column) {
  std::string letters;
  for (Index left = row; left >= 0; left = left / 26 - 1) letters.insert(letters.begin(), static_cast<char>('a' + left % 26));
  return letters + std::to_string(column + 1);
}

struct Glyphs : PictureTask {
  Index shape_count = 6, colour_count = 6;
  Index cell = 8;
  double noise = 12;
  std::vector<std::string> tells{"colour", "shape"};

  std::vector<Field> keys() override {
    return {field(&shape_count, "shapes", "number of shapes of glyphs").in(1, shapes.size()),
            field(&colour_count, "colours", "number of colours").in(1, colours.size()),
            field(&cell, "cell", "side of a cell in pixels").in(4, 256),
            field(&noise, "noise", "largest noise on a pixel's value, of 255").in(0, 255),
            field(&tells, "tells", "attributes of a glyph that a caption names, in this order").one_of({"place", "colour", "shape"})};
  }

  std::optional<std::string> contradiction() override {
    if (tells.empty()) return "tells: is empty";
    for (auto const& one : tells)
      if (std::ranges::count(tells, one) > 1) return fmt::format("tells: {} is listed twice", one);
    return PictureTask::contradiction();
  }

  std::vector<std::string> words() const override {
    std::vector<std::string> all;
    if (tells_of("colour"))
      for (Index i = 0; i < colour_count; ++i) all.emplace_back(at(colours, i).name);
    if (tells_of("shape"))
      for (Index i = 0; i < shape_count; ++i) all.emplace_back(at(shapes, i).name);
    if (tells_of("place"))
      for (Index i = 0; i < rows * columns; ++i) all.push_back(cell_name(i / columns, i % columns));
    return all;
  }

  PictureSizes sizes() const override { return {.channels = 3, .levels = 256, .side = cell, .words_each = std::ssize(tells)}; }

  std::vector<std::string> put(PictureCell const& square, Index row, Index column, Stream const& draws, bool) const override {
    auto const& colour = at(colours, draw_number(draws, 0, colour_count));
    auto const& shape = at(shapes, draw_number(draws, 1, shape_count));
    paint(square, colour, shape, draws);
    return mapped(tells, [&](auto const& what) {
      return what == "colour" ? colour.name : what == "shape" ? shape.name : cell_name(row, column);
    });
  }

  void finish(std::span<Index> pixels, Stream const& draws) const override {
    std::vector<std::uint32_t> words((pixels.size() + 3) / 4 * 4);
    draws.words(0, words);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      double const off = noise * (2 * static_cast<double>(words[i]) / 4294967296.0 - 1);
      pixels[i] = std::clamp<Index>(pixels[i] + std::lround(off), 0, 255);
    }
  }

 private:
  bool tells_of(std::string_view what) const { return std::ranges::find(tells, what) != tells.end(); }

  /// 70 to 95 % as large as the cell, wherever it then fits; edges by sixteen samples of a pixel.
  void paint(PictureCell const& square, Colour const& colour, GlyphShape const& shape, Stream const& draws) const {
    double const half = static_cast<double>(cell) / 2, radius = half * (0.7 + 0.25 * draws.uniform(2)), room = half - radius;
    double const x0 = half + room * (2 * draws.uniform(3) - 1), y0 = half + room * (2 * draws.uniform(4) - 1);
    for (Index y = 0; y < cell; ++y) {
      for (Index x = 0; x < cell; ++x) {
        double covered = 0;
        for (int sample = 0; sample < 16; ++sample) {
          double const px = static_cast<double>(x) + (sample % 4 + 0.5) / 4, py = static_cast<double>(y) + (sample / 4 + 0.5) / 4;
          covered += shape.holds((px - x0) / radius, (py - y0) / radius) ? 1.0 / 16 : 0;
        }
        for (Index channel = 0; channel < 3; ++channel)
          square.at(channel, y, x) = std::lround(dark + covered * (at(colour.light, channel) - dark));
      }
    }
  }

  static constexpr double dark = 0;
};

Declared<DataKind> const glyphs_data{
    picture_kind<Glyphs>("glyphs", "pictures of coloured glyphs on a grid, and captions in reading order")};

}  // namespace

}  // namespace heed
