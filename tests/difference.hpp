#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include "autograd/tensor.hpp"

namespace heed::test {

/// The largest difference between two tensors of one shape, relative to the largest element of `expected` or 1. NaN agrees with nothing.
inline double difference(Tensor const& found, Tensor const& expected) {
  REQUIRE(found.shape() == expected.shape());
  double largest = 1, worst = 0;
  for (double const x : expected.to_vector()) largest = std::max(largest, std::abs(x));
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    double const error = std::abs(found.at(i) - expected.at(i));
    if (std::isnan(error)) return std::numeric_limits<double>::quiet_NaN();
    worst = std::max(worst, error);
  }
  return worst / largest;
}

}  // namespace heed::test
