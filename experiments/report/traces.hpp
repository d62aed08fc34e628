#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "experiments/report/curve.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"

namespace heed {

// What figures of arms share: looks, ranges, names beside the curves.

constexpr double label_height = 0.125;  ///< inches, of a line of small print

/// Thin frames, faint grids, text in ink.
extern char const* const plot_style;
/// The palette of heat maps: the same to those who do not see red from green (Nuñez et al. 2018).
extern char const* const cividis;

/// Neighbours differ in colour and in dashes, for print without colours; arms beyond the palette repeat its colours with other dashes. The
/// baseline is ink and solid, whatever its place.
struct Style {
  std::string colour;
  std::size_t dash = 1;
};
Style style_of(Material const& material, std::size_t arm);

std::string short_name(ArmResult const& arm);
/// "validation.loss" as an axis says it: "validation loss (nat)".
std::string axis_name(Material const& material, std::string metric);
/// "Mean and 95 % interval over 6 seeds", with the arms whose curves are of fewer.
std::string seeds_said(Material const& material);

/// A range of values on an axis; empty at first, and then nothing is in it.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void include(double value);
  /// By a share of itself at both ends.
  void widen(double share);
  bool is_empty() const { return !(low < high); }
  bool holds(double value) const { return value >= low && value <= high; }
  double place(double value) const { return (value - low) / (high - low); }
};

/// Whether a value lies so far from the others that a scale which shows it hides how they differ: 8 times their median distance to the
/// median. Of fewer than five values only one that is a million times as large as their (lower) median. Infinity always does.
class Outliers {
 public:
  explicit Outliers(std::vector<double> values);
  bool operator()(double value) const { return std::isinf(value) || (spread_ > 0 && std::abs(value - middle_) > times * spread_); }

 private:
  static constexpr double times = 8;
  double middle_ = 0, spread_ = 0;
};

/// A curve with the name and the look of its arm.
struct Trace {
  std::string name;
  Style style;
  Curve curve;
  std::size_t arm = 0;
  bool published = false;  ///< others' numbers: points that are joined, without an interval
  /// Its last finite value, else NaN.
  double end() const;
};

/// The arms' curves of a metric, or of its paired differences to the baseline. Arms without one are left out.
std::vector<Trace> traces_of(Material const& material, std::string const& metric, bool against_baseline);
/// What others have reported of the metric: a line through their points, or across all steps of `traces` for one number.
std::vector<Trace> published_traces(Material const& material, std::vector<Trace> const& traces);
Outliers outliers_among(std::vector<Trace> const& traces);
double end_of_training(std::vector<Trace> const& traces);
/// How large a value may be on a scale that shows most of these: a million times the (lower) median size of those that are finite.
double reach_of(std::vector<double> values);
std::vector<double> ends_of(std::vector<Trace> const& traces);
/// The range of what is seen from the step `from` on, without outliers.
Range range_from(std::vector<Trace> const& traces, double from, Outliers const& outlier);

// As commands of gnuplot.

/// Data blocks $c0, $c1, …: step, mean, low, high; a gap where a value is not finite.
std::string blocks(std::vector<Trace> const& traces);
/// Bands first, lines above all of them. What ends beyond the range is left out.
std::string plot(std::vector<Trace> const& traces, Range const& range);
/// Names beside the right end of the curves, in their colours; what lies beyond the range with its value and an arrow.
std::string direct_labels(std::vector<Trace> const& traces, Range const& range, double height);
/// Inches that those take.
double label_width(std::vector<Trace> const& traces);
/// A y axis: its name ("": none), its ends and its ticks. And the inches on its left that these take: gnuplot leaves out a name without
/// room.
std::string y_axis(std::string const& name, Range const& range);
double y_axis_width(std::string const& name, Range const& range);
std::string x_steps(double from, double to);
/// How high a figure of these curves is, so that their names have room beside it.
double height_of(std::vector<Trace> const& traces, double least = 2.6);
/// A figure of these curves but for its x axis and what is plotted: data blocks, the frame, the y axis, the curves' names.
std::string frame_of(std::vector<Trace> const& traces, Range const& range, std::string const& y, double height);

}  // namespace heed
