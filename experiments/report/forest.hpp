#pragma once

#include <optional>

#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// A forest plot: each arm's paired differences to the baseline, a dot a seed, with mean and interval, and p and verdict beside them. An
/// arm far from the others is an arrow at the edge. Nothing if no arm has a difference.
std::optional<Figure> forest(Material const& material);

}  // namespace heed
