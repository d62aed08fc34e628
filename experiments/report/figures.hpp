#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// Every figure that the material gives rise to: learning curves, differences to the baseline along training and at its end, the metric
/// over a varied number, and probes over layers and steps.
std::vector<Figure> figures(Material const& material);

/// A forest plot: each arm's paired differences to the baseline, a dot a seed, with mean and interval, and p and verdict beside them. An
/// arm far from the others is an arrow at the edge. Nothing if no arm has a difference.
std::optional<Figure> forest(Material const& material);

// Figures of arms that combine the values of several keys: small panels, lines for the values of one key, one legend.

/// Each arm's mean and interval: one key along the axis, one as lines, a panel for each combination of the others. Lines that are not
/// parallel are an interaction.
std::optional<Figure> interaction(Material const& material, Grid const& grid);

/// A metric along training, or its paired differences to the baseline: lines for the key with most values, a panel for each combination of
/// the others. Nothing if there is nothing to draw.
std::optional<Figure> curve_panels(Material const& material, Grid const& grid, std::string const& metric, bool against_baseline);

/// The grid of `tune:`: the score over the value, a line an arm, dots for its trials, a ring round what it chose. Over the only key if its
/// values are numbers, else over the points in their order. Nothing without `tune:`, or if no trial has ended.
std::optional<Figure> tuning_figure(Material const& material);

/// For each probe that was recorded by layer (and head), a heat map of its mean over the seeds: rows are layers and heads, columns steps,
/// one panel an arm, all in one colour scale.
std::vector<Figure> heat_maps(Material const& material);

}  // namespace heed
