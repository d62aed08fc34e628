// How much a token's features are carried by a few of them: large where some are outliers (Elhage et al. 2023), 3 where all are normal.

#include <optional>
#include <span>

#include "experiments/metric/key.hpp"
#include "experiments/metric/probe/probe.hpp"

namespace heed {

namespace {

/// The kurtosis of the features of one token; nothing if they are all equal.
std::optional<double> kurtosis_of(std::span<double const> x) {
  auto const count = static_cast<double>(x.size());
  double sum = 0, squares = 0, fourths = 0;
  for (double const value : x) sum += value;
  for (double const value : x) {
    double const square = (value - sum / count) * (value - sum / count);
    squares += square;
    fourths += square * square;
  }
  return squares > 0 ? std::optional(count * fourths / (squares * squares)) : std::nullopt;
}

Declared<Probe> const kurtosis_probe{
    {"activations",
     "kurtosis",
     "E (x − μ)⁴ / (E (x − μ)²)²",
     "kurtosis of the features x of a token in the residual stream after each layer, mean over tokens: 3 if "
     "normally distributed, about the width if one feature dominates",
     {"activations.kurtosis.layer*", "", {}, ""},
     Probe::Input::streams,
     [](Probed const& probed, Row& row) {
       for (std::size_t l = 0; l < probed.streams.size(); ++l) {
         auto const stream = probed.streams[l].to_vector();
         auto const width = static_cast<std::size_t>(probed.streams[l].size(-1));
         double sum = 0, tokens = 0;
         for (std::size_t at = 0; at < stream.size(); at += width)
           if (auto const found = kurtosis_of(std::span(stream).subspan(at, width))) sum += *found, tokens += 1;
         if (tokens > 0) row.set(MetricKey::of_probe("activations.kurtosis", l).text(), sum / tokens);
       }
     }}};

}  // namespace

}  // namespace heed
