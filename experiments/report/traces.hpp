#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "experiments/report/curve.hpp"
#include "experiments/report/gnuplot.hpp"
#include "experiments/report/material.hpp"

namespace heed {

// Shared by figures of arms: styles, ranges, labels of curves.

constexpr double label_height = 0.125;  ///< inches per line of small print

/// gnuplot settings: thin frames, faint grids, dark text.
extern char const* const plot_style;
/// The palette of heat maps, readable with red-green colour blindness (Nuñez et al. 2018).
extern char const* const cividis;

/// Neighbouring arms differ in colour and dash pattern, for black-and-white print; arms beyond the palette repeat colours with other
/// dashes. The baseline is always solid, in the text's colour.
struct Style {
  std::string colour;
  std::size_t dash = 1;
};
Style style_of(Material const& material, std::size_t arm);

std::string short_name(ArmResult const& arm);
/// "validation.loss" as an axis label: "validation loss (nat)".
std::string axis_name(Material const& material, std::string metric);
/// "Mean and 95 % interval over 6 seeds", listing the arms with fewer.
std::string seeds_text(Material const& material);

/// A range of values on an axis; empty at first.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void include(double value);
  /// Extends both ends by this fraction of the range.
  void widen(double share);
  bool is_empty() const { return !(low < high); }
  bool holds(double value) const { return value >= low && value <= high; }
  double place(double value) const { return (value - low) / (high - low); }
};

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

/// A curve with its arm's name and style.
struct Trace {
  std::string name;
  Style style;
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

// Everything below returns gnuplot commands or sizes for them.

/// Data blocks $c0, $c1, …: step, mean, low, high; a gap where a value is not finite.
std::string blocks(std::vector<Trace> const& traces);
/// Bands first, lines above them. Curves are clipped to the range.
std::string plot(std::vector<Trace> const& traces, Range const& range);
/// Names at the right end of the curves, in their colours; a curve that ends outside the range gets its value and an arrow.
std::string direct_labels(std::vector<Trace> const& traces, Range const& range, double height);
/// The width of these labels in inches.
double label_width(std::vector<Trace> const& traces);
/// A y axis: its name ("": none), limits and ticks; and their width in inches, without which gnuplot drops the name.
std::string y_axis(std::string const& name, Range const& range);
double y_axis_width(std::string const& name, Range const& range);
std::string x_steps(double from, double to);
/// The height of a figure that has room for the curves' labels.
double height_of(std::vector<Trace> const& traces, double least = 2.6);
/// A figure of these curves without x axis and plot command: data blocks, frame, y axis, labels.
std::string frame_of(std::vector<Trace> const& traces, Range const& range, std::string const& y, double height);

}  // namespace heed
