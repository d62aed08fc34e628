#pragma once

#include <vector>

#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// For each probe that was recorded by layer (and head), a heat map of its mean over the seeds: rows are layers and heads, columns steps,
/// one panel an arm, all in one colour scale.
std::vector<Figure> heat_maps(Material const& material);

}  // namespace heed
