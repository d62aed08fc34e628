#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/report/figure.hpp"

namespace heed {

/// Attention of each target word to the source words.
struct Alignment {
  std::size_t line = 0;  ///< line number of the source, from 1
  std::vector<std::string> source, target;
  struct AlignmentLayer {
    Index heads;
    Tensor weights;  ///< their mean, [target, source]
  };
  std::vector<AlignmentLayer> layers;
};

/// For the first sequence of a batch: each layer's attention from the inputs to the source. The label of a position is the word that it
/// predicts: the next input, or <eos> at the last.
Alignment alignment_of(AttentionMaps const& attention);

/// Source words against target words, one panel per layer.
Figure alignment_figure(Alignment const& alignment);

/// One page with all pictures (.html); or one file per picture, FILE-3.svg for line 3 (FILE.svg if it is the only one). Throws Error if
/// gnuplot is not installed or a file cannot be written.
void write_alignments(std::filesystem::path const& file, std::vector<Alignment> const& alignments);

}  // namespace heed
