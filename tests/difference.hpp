#pragma once

#include "autograd/tensor.hpp"
#include "tests/test.hpp"

namespace heed::test {

/// The larger of two errors; NaN if either is, which std::max would pass over and no bound admits.
inline double worse(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
}

/// The largest absolute difference between two tensors of one shape. NaN agrees with nothing.
inline double absolute_difference(Tensor const& found, Tensor const& expected) {
  REQUIRE(found.shape() == expected.shape());
  double worst = 0;
  for (Index i = 0; i < expected.elements(); ++i) worst = worse(worst, std::abs(found.at(i) - expected.at(i)));
  return worst;
}

/// The same relative to the largest element of `expected` or to `min`, if that is more.
inline double relative_difference(Tensor const& found, Tensor const& expected, double min = 0) {
  double const worst = absolute_difference(found, expected);
  double largest = min;
  for (double const x : expected.to_vector()) largest = worse(largest, std::abs(x));
  return worst == 0 ? 0 : worst / largest;
}

/// The same relative to at least 1.
inline double difference(Tensor const& found, Tensor const& expected) { return relative_difference(found, expected, 1); }

inline bool all_finite(std::vector<double> const& values) {
  return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

using heed::same_bits;

}  // namespace heed::test
