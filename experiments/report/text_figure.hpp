#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/report/figure.hpp"

namespace heed {

/// The maps of one sequence, a figure per layer and a panel per head: rows are queries, columns keys. `only`: one head of one layer. Throws
/// Error for a layer or head that there is not, with how many there are.
std::vector<Figure> text_figures(AttentionMaps const& attention, std::optional<std::pair<Index, Index>> only);

/// One page of all figures (.html), or all panels in one picture (.svg, .pdf, .png). Throws Error without gnuplot, or if it cannot write.
void write_maps(std::filesystem::path const& file, std::string const& title, std::vector<Figure> figures);

}  // namespace heed
