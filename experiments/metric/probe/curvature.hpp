#pragma once

#include <functional>
#include <vector>

#include "autograd/index.hpp"

namespace heed {

/// An approximate eigenvalue.
struct Eigenvalue {
  double value;     ///< vᵀHv of the last unit vector v
  double residual;  ///< ‖Hv − value·v‖: some eigenvalue of H is at most this far from value
  Index products;   ///< number of products Hv computed
};

/// The largest eigenvalue of a symmetric H, given by its products with vectors, from a non-zero `start`: LOBPCG with one vector (Knyazev
/// 2001). The next v maximises vᵀHv over the span of v, Hv and the last step. Plain power iteration would find the eigenvalue of the
/// largest modulus, which may be negative, and would not converge where the outermost two are about λ and −λ, as is common for Hessians of
/// networks. Stops when the residual is at most tolerance·|value|, or after `iterations` products.
Eigenvalue largest_eigenvalue(std::function<std::vector<double>(std::vector<double> const&)> const& product, std::vector<double> start,
                              Index iterations, double tolerance);

}  // namespace heed
