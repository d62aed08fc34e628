#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace heed {

/// An eigenvalue by power iteration.
struct Eigenvalue {
  double value;           ///< vᵀHv of the last unit vector v
  double residual;        ///< ‖Hv − value·v‖: an eigenvalue of H is at most so far from value
  std::int64_t products;  ///< products Hv that it took
};

/// The largest eigenvalue of a symmetric H, which is known by its products with vectors. Power iteration from `start`, which must not be
/// zero, finds the eigenvalue λ of the largest modulus; if that is negative, the largest is found as that of H − λI, none of whose
/// eigenvalues is below 0. Each of the two ends when the residual is at most tolerance times the modulus of what it has found, or after
/// `iterations` products.
Eigenvalue largest_eigenvalue(std::function<std::vector<double>(std::vector<double> const&)> const& product, std::vector<double> start,
                              std::int64_t iterations, double tolerance);

}  // namespace heed
