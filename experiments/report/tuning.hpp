#pragma once

#include <optional>

#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// The grid of `tune:`: the score over the value, a line an arm, dots for its trials, a ring round what it chose. Over the only key if its
/// values are numbers, else over the points in their order. Nothing without `tune:`, or if no trial has ended.
std::optional<Figure> tuning_figure(Material const& material);

}  // namespace heed
