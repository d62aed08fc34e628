#pragma once

#include <optional>
#include <string>
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

// Figures of arms that combine the values of several keys: small panels, lines for the values of one key, one legend.

/// Each arm's mean and interval: one key on the axis, one as lines, a panel for each combination of the others. Lines that are not parallel
/// show an interaction.
std::optional<Figure> interaction(Material const& material, Grid const& grid);

/// A metric during training, or its paired differences to the baseline: lines for the key with the most values, a panel for each
/// combination of the others. Nothing without data.
std::optional<Figure> curve_panels(Material const& material, Grid const& grid, std::string const& metric, bool against_baseline);

/// The grid of `tune:`: the score against the value, a line per arm, dots for trials, a ring around the chosen one. Against the only key if
/// its values are numbers, else against the points in order. Nothing without `tune:`, or if no trial has ended.
std::optional<Figure> tuning_figure(Material const& material);

/// For each probe recorded by layer (and head), a heat map of its mean over the seeds: rows are layers and heads, columns steps, a panel
/// per arm, one colour scale.
std::vector<Figure> heat_maps(Material const& material);

}  // namespace heed
