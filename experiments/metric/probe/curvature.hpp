#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace heed {

/// An eigenvalue, about.
struct Eigenvalue {
  double value;           ///< vᵀHv of the last unit vector v
  double residual;        ///< ‖Hv − value·v‖: an eigenvalue of H is at most so far from value
  std::int64_t products;  ///< products Hv that it took
};

/// The largest eigenvalue of a symmetric H, which is known by its products with vectors, from `start`, which must not be zero: power
/// iteration made locally optimal (LOBPCG with one vector; Knyazev 2001). The next v maximises vᵀHv over what v, Hv and the last step span.
/// Power iteration itself finds the eigenvalue of the largest modulus, which here may be a negative one, and none where the outermost two
/// are about λ and −λ, as Hessians of networks often have them. Ends when the residual is at most tolerance·|value|, or after `iterations`
/// products.
Eigenvalue largest_eigenvalue(std::function<std::vector<double>(std::vector<double> const&)> const& product, std::vector<double> start,
                              std::int64_t iterations, double tolerance);

}  // namespace heed
