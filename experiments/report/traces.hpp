#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/report/figure.hpp"
#include "experiments/report/material.hpp"

namespace heed {

/// The mean with its interval, or alone.
CurvePoint point_of(double x, Estimate const& found);

/// A metric by step.
using SeriesValues = std::vector<std::pair<Index, double>>;

/// A value of several seeds during training: at each step the mean with its 95 % interval, or the value itself for one seed. With more
/// than `most` steps, each seed is first averaged over neighbouring ones. A point with a value that is not finite is NaN. The curve ends
/// where the first seed ends (train.stop), because later means would be over other trials.
Curve curve_of(std::vector<SeriesValues> const& seeds, std::size_t most = 100);

// Shared by figures of arms: their looks, curves, names and ranges.

/// Neighbouring arms differ in colour and dash pattern, for black-and-white print; arms beyond the palette repeat colours with other
/// dashes. The baseline is always solid, in the text's colour.
Look style_of(Material const& material, std::size_t arm);

std::string short_name(ArmResult const& arm);
/// "validation.loss" as an axis label: "validation loss (nat)".
std::string axis_name(Material const& material, std::string metric);
/// A text with its numbers in as many digits, for an order in which layer2 comes before layer10.
std::string numbers_in_order(std::string_view text);
/// "Mean and 95 % interval over 6 seeds", listing the arms with fewer.
std::string seeds_text(Material const& material);

/// Detects values that would dominate a scale: more than 8 times the median distance from the median. Among fewer than five values, only
/// one a million times their (lower) median. Infinity is always an outlier.
class Outliers {
 public:
  explicit Outliers(std::vector<double> values);
  bool operator()(double value) const { return std::isinf(value) || (spread_ > 0 && std::abs(value - middle_) > times * spread_); }

 private:
  static constexpr double times = 8;
  double middle_ = 0, spread_ = 0;
};
/// A limit for values on a scale: a million times the (lower) median size of the finite ones.
double reach_of(std::vector<double> const& values);

/// Curves, each with its arm's name and look.
using Traces = std::vector<FigureLayer>;

/// The arms' curves of a metric, or of its paired differences to the baseline. Arms without data are left out.
Traces traces_of(Material const& material, std::string const& metric, bool against_baseline);
/// A curve's last finite value, else NaN.
double end_of(FigureLayer const& trace);
std::vector<double> ends_of(Traces const& traces);
double end_of_training(Traces const& traces);
/// The range of the curves from step `from` on, between points too, without outliers.
Range range_from(Traces const& traces, double from, Outliers const& outlier);

/// Bands first, lines above them; without the curves that end beyond the range.
std::vector<FigureLayer> layers_of(Traces const& traces, Range const& range, bool bands = true);
/// Names for the ends of the curves, in their colours; with its value and an arrow where a curve ends beyond the range.
std::vector<EndLabel> ends_within(Traces const& traces, Range const& range);
Axis steps_axis(double from, double to);

// The figures of a run or an ablation.

/// All of them: learning curves, differences to the baseline in training and at its end, the metric over a number, probes by layer.
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
