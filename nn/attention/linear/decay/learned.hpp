#pragma once

#include <cmath>

#include "nn/attention/linear/parts.hpp"

namespace heed {

/// The initial values of `rate`: the logarithm of a uniform number.
inline Initial initial_rate(DecayStart const& start) {
  return Initial::drawn([low = start.rate[0], high = start.rate[1]](double u) { return std::log(low + (high - low) * u); });
}

/// The initial values of softplus's bias: softplus(bias) is a number whose logarithm is uniform, at least 1e-4.
inline Initial initial_step(DecayStart const& start) {
  return Initial::drawn([low = std::log(start.step[0]), high = std::log(start.step[1])](double u) {
    return std::log(std::expm1(std::max(std::exp(low + (high - low) * u), 1e-4)));
  });
}

}  // namespace heed
