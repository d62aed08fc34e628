// The residual stream: its size, and how much of a token's features is carried by a few of them (Elhage et al. 2023).

#include <cmath>
#include <optional>
#include <span>

#include "experiments/metric/info.hpp"
#include "experiments/metric/probe/probe.hpp"

namespace heed {

namespace {

/// A number of each layer's stream; nothing where f gives nothing.
Probe of_streams(std::string const& name, std::string formula, std::string help, std::optional<double> (*f)(Tensor const& stream)) {
  return {"activations",
          name,
          std::move(formula),
          std::move(help),
          {"activations." + name + ".layer*", "", {}, ""},
          Probe::Input::streams,
          [name, f](Probed const& probed, Row& row) {
            for (std::size_t l = 0; l < probed.streams.size(); ++l)
              if (auto const value = f(probed.streams[l])) row.set(MetricKey::of_probe("activations." + name, l).text(), *value);
          }};
}

std::optional<double> rms(Tensor const& stream) { return std::sqrt(squared_norm(stream) / to_double(stream.elements())); }

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

std::optional<double> mean_kurtosis(Tensor const& stream) {
  auto const values = stream.to_vector();
  auto const width = static_cast<std::size_t>(stream.size(-1));
  double sum = 0, tokens = 0;
  for (std::size_t at = 0; at < values.size(); at += width)
    if (auto const found = kurtosis_of(std::span(values).subspan(at, width))) sum += *found, tokens += 1;
  return tokens > 0 ? std::optional(sum / tokens) : std::nullopt;
}

Declared<Probe> const rms_probe{of_streams("rms", "√mean x²", "RMS of the residual stream x after each layer", rms)};
Declared<Probe> const kurtosis_probe{
    of_streams("kurtosis", "E (x − μ)⁴ / (E (x − μ)²)²",
               "kurtosis of the features x of a token in the residual stream after each layer, mean over tokens: 3 if "
               "normally distributed, about the width if one feature dominates",
               mean_kurtosis)};

}  // namespace

}  // namespace heed
