#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/report/gnuplot.hpp"

namespace heed {

/// A picture, and where each word of its caption looked.
struct ImageAttention {
  Tensor pixels;                   ///< int64 [C, H, W]
  std::vector<std::string> words;  ///< of the caption, the mark of its end last
  Tensor weights;                  ///< [words, fields], the mean over heads
  std::int64_t across;             ///< fields in a row
};

/// Of a pass over one row, the first layer that attends to a picture; without words if there is none.
ImageAttention image_attention(AttentionMaps const& attention);

/// The picture as it is, and then for each word with its fields as bright as their weights, of the largest; a frame around that one.
Figure picture_figure(ImageAttention const& image);

/// Weights of each word as they lie in the picture, in hundredths: as text, a word's fields beside its name.
std::string picture_table(ImageAttention const& image);

/// Draws it into a file .svg, .pdf or .png. Throws Error without gnuplot, and if the file cannot be written.
void write_picture(std::filesystem::path const& file, ImageAttention const& image);

}  // namespace heed
