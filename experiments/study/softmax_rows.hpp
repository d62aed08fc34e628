#pragma once

#include <array>
#include <string>
#include <vector>

namespace heed {

/// What is measured of a row of scores.
inline constexpr std::array length_quantities{"trace_jacobian", "jacobian_norm_squared", "entropy", "max_weight", "gap_function"};

/// The factor of all scores of a row of n keys that was trained with n₀: log n/log n₀ (ssmax; Chiang and Cholak 2022), and YaRN's (Peng et
/// al. 2023), the square of 1 + 0.1 log(n/n₀); 1 for other variants.
double factor_of(std::string const& variant, double n, double trained);

/// The quantities of one row, in their order: of the Jacobian of the weights by the scores, the weights' entropy −Σ p log p and largest,
/// and the scores' gap function. `variant`: softmax, scale_invariant, softmax1, sigmoid or entmax15; others as softmax.
std::array<double, length_quantities.size()> measured_row(std::string const& variant, std::vector<double> scores);

}  // namespace heed
