#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/report/gnuplot.hpp"
#include "experiments/study/softmax_scaling.hpp"

namespace heed {

/// Heat maps over (d_k, n) by scale: entropy, typical and mean square Jacobian relative to those of uniform weights. Nothing if either has
/// one value only.
std::optional<Figure> saturation_maps(std::vector<ScalingCell> const& cells, std::string const& distribution,
                                      std::vector<std::string> const& scales);

/// (measured − exact)/standard error of all cells in their order, beside normal quantiles; nothing without theory.
std::optional<Figure> agreement_with_theory(std::vector<ScalingCell> const& cells);

/// What reaches the weights of each layer's queries before training, a panel for each place of the norms and scale; nothing without layers.
std::optional<Figure> layers_before_training(std::vector<ScalingCell> const& cells);
/// The first layer beside the last at the largest d_k, as HTML.
std::string table_of_layers(std::vector<ScalingCell> const& cells);

}  // namespace heed
