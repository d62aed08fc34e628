#include "experiments/report/picture_figure.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/ops/reduce.hpp"
#include "experiments/config/table.hpp"
#include "experiments/metric/alignment_error.hpp"

namespace heed {

namespace {

/// A frame around a field, whose edges are in pixels.
Box frame_of(Index field, PictureFields const& picture) {
  double const w = to_double(picture.width) / to_double(picture.across), h = to_double(picture.height) / to_double(picture.rows());
  double const left = to_double(field % picture.across) * w - 0.5, top = to_double(field / picture.across) * h - 0.5;
  return {.x = {left, left + w}, .y = {top, top + h}, .colour = line_colour(2), .filled = false};
}

/// Every pixel as red, green and blue, as bright as shares say, which are of fields.
Cells pixels_of(ImageAttention const& image, PictureFields const& fields, std::vector<double> const& shares) {
  auto const levels = image.pixels.data<std::int64_t>();
  auto const brightest = static_cast<double>(std::max<Index>(1, std::ranges::max(levels)));
  Index const size = fields.height * fields.width, last = image.pixels.size(0) - 1;
  Cells cells{.columns = static_cast<std::size_t>(fields.width)};
  for (Index i = 0; i < size; ++i) {
    double const factor = 255 * (0.25 + 0.75 * at(shares, fields.at(i / fields.width, i % fields.width))) / brightest;
    auto const level = [&](Index channel) { return factor * static_cast<double>(at(levels, std::min(channel, last) * size + i)); };
    cells.pixels.push_back({level(0), level(1), level(2)});
  }
  return cells;
}

/// The picture itself, or what a word of its caption looked at.
Panel picture_panel(ImageAttention const& image, PictureFields const& fields, Index number) {
  std::vector<double> shares(static_cast<std::size_t>(image.weights.size(1)), 1.0);
  Panel panel{.title = number > 0 ? cut(at(image.words, number - 1), 16) : "the picture",
              .x = {.low = -0.5, .high = static_cast<double>(fields.width) - 0.5},
              .y = {.low = static_cast<double>(fields.height) - 0.5, .high = -0.5}};
  if (number > 0) {
    auto const weights = image.weights.rows(number - 1, 1).to_vector();
    auto const most = std::ranges::max_element(weights);
    for (std::size_t i = 0; i < weights.size(); ++i) shares[i] = *most > 0 && std::isfinite(weights[i]) ? weights[i] / *most : 0;
    panel.boxes.push_back(frame_of(most - weights.begin(), fields));
  }
  panel.cells = pixels_of(image, fields, shares);
  return panel;
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
  PictureFields const fields{image.pixels.size(1), image.pixels.size(2), image.weights.size(1), image.across};
  Figure figure{.name = "looked_at",
                .title = fmt::format("{}", fmt::join(image.words.begin(), image.words.end() - 1, " ")),
                .caption =
                    "The image, and the attention map of each word of its caption: brightness is the weight relative to the largest, "
                    "which is framed.",
                .across = 5,
                .shared_y = true,
                .centred = true,
                .frame_width = 0.96,
                .shape = static_cast<double>(fields.height) / static_cast<double>(fields.width)};
  for (Index number = 0; number <= std::ssize(image.words); ++number) figure.panels.push_back(picture_panel(image, fields, number));
  return figure;
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

}  // namespace heed
