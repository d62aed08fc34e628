#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "experiments/report/curve.hpp"
#include "experiments/report/material.hpp"

namespace heed {

// Shared by figures of arms: their looks, curves, names and ranges.

/// Neighbouring arms differ in colour and dash pattern, for black-and-white print; arms beyond the palette repeat colours with other
/// dashes. The baseline is always solid, in the text's colour.
Look style_of(Material const& material, std::size_t arm);

std::string short_name(ArmResult const& arm);
/// "validation.loss" as an axis label: "validation loss (nat)".
std::string axis_name(Material const& material, std::string metric);
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

/// A curve with its arm's name and look.
struct Trace {
  std::string name;
  Look look;
  Curve curve;
  std::size_t arm = 0;
  bool published = false;  ///< published numbers: connected points without an interval
  /// Its last finite value, else NaN.
  double end() const;
};

/// The arms' curves of a metric, or of its paired differences to the baseline. Arms without data are left out.
std::vector<Trace> traces_of(Material const& material, std::string const& metric, bool against_baseline);
/// Published values of the metric: a line through their points or, for one number, across all steps of `traces`.
std::vector<Trace> published_traces(Material const& material, std::vector<Trace> const& traces);
Outliers outliers_among(std::vector<Trace> const& traces);
double end_of_training(std::vector<Trace> const& traces);
/// A limit for values on a scale: a million times the (lower) median size of the finite ones.
double reach_of(std::vector<double> values);
std::vector<double> ends_of(std::vector<Trace> const& traces);
/// The range of the curves from step `from` on, without outliers.
Range range_from(std::vector<Trace> const& traces, double from, Outliers const& outlier);

/// Bands first, lines above them; without the curves that end beyond the range.
std::vector<FigureLayer> layers_of(std::vector<Trace> const& traces, Range const& range, bool bands = true);
/// Points with intervals, joined by lines, with another mark for each.
std::vector<FigureLayer> joined_layers_of(std::vector<Trace> const& traces);
/// Names for the ends of the curves, in their colours; with its value and an arrow where a curve ends beyond the range.
std::vector<EndLabel> ends_within(std::vector<Trace> const& traces, Range const& range);
Axis steps_axis(double from, double to);
/// A figure of one panel with these names beside it; its x axis and layers are still missing.
Figure labelled_figure(std::vector<Trace> const& traces, Range const& range, std::string const& y, double least_height = 2.0);

}  // namespace heed
