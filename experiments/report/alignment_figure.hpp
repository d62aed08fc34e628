#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/report/gnuplot.hpp"

namespace heed {

/// Where each word of a target looked in its source when it was written.
struct Alignment {
  std::size_t line = 0;  ///< of the source in its text, from 1
  std::vector<std::string> source, target;
  struct AlignmentLayer {
    std::int64_t heads;
    Tensor weights;  ///< their mean, [target, source]
  };
  std::vector<AlignmentLayer> layers;
};

/// Of the first row of a batch: of each layer from the inputs to the source. The word that a place writes is the one that the
/// next place reads, and <eos> at the last.
Alignment alignment_of(AttentionMaps const& attention);

/// Source words over target words, a panel a layer.
Figure alignment_figure(Alignment const& alignment);

/// Throws ConfigError unless the name ends in .html, .svg, .pdf or .png.
void check_alignment_file(std::filesystem::path const& file);
/// A page of all pictures; or each by itself, FILE-3.svg of line 3, of a single one FILE.svg. Throws Error if gnuplot is not installed or
/// a file cannot be written.
void write_alignments(std::filesystem::path const& file, std::vector<Alignment> const& alignments);

}  // namespace heed
