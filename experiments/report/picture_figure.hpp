#pragma once

#include <string>
#include <vector>

#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/report/figure.hpp"

namespace heed {

/// A picture, and the attention of each word of its caption.
struct ImageAttention {
  Tensor pixels;                   ///< int64 [C, H, W]
  std::vector<std::string> words;  ///< of the caption, the end mark last
  Tensor weights;                  ///< [words, fields], the mean over heads
  Index across;                    ///< fields per row
};

/// From a pass over one sequence: the first layer that attends to a picture; without words if there is none.
ImageAttention image_attention(AttentionMaps const& attention);

/// The picture, then one copy per word, each field's brightness proportional to its weight; a frame marks the largest.
Figure picture_figure(ImageAttention const& image);

/// The weights of each word in the picture's layout, in hundredths, as text.
std::string picture_table(ImageAttention const& image);

}  // namespace heed
