#pragma once

#include <optional>
#include <vector>

#include "experiments/report/figure.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// All figures of the material: learning curves, differences to the baseline during training and at its end, the metric against a varied
/// number, and probes by layer and step.
std::vector<Figure> figures(Material const& material);

/// A forest plot: each arm's paired differences to the baseline, one dot per seed, with mean, interval, p and verdict. An arm far from the
/// others becomes an arrow at the edge. Nothing if no arm has a difference.
std::optional<Figure> forest(Material const& material);

/// The grid of `tune:`: the score against the value, a line per arm, dots for trials, a ring around the chosen one. Against the only key if
/// its values are numbers, else against the points in order. Nothing without `tune:`, or if no trial has ended.
std::optional<Figure> tuning_figure(Material const& material);

/// For each probe recorded by layer (and head), a heat map of its mean over the seeds: rows are layers and heads, columns steps, a panel
/// per arm, one colour scale.
std::vector<Figure> heat_maps(Material const& material);

}  // namespace heed
