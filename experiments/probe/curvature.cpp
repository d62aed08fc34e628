// How curved the loss is where training stands (Cohen et al. 2021).

#include "experiments/probe/curvature.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/graph.hpp"
#include "experiments/probe/probe.hpp"

namespace heed {

namespace {

using Vector = std::vector<double>;
using Product = std::function<Vector(Vector const&)>;

double dot(Vector const& a, Vector const& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

void normalise(Vector& v) {
  double const norm = std::sqrt(dot(v, v));
  if (norm == 0) return;
  for (double& x : v) x /= norm;
}

/// The eigenvalue of H whose distance from `shift` is largest.
Eigenvalue farthest_from(double shift, Product const& product, Vector v, std::int64_t iterations, double tolerance) {
  normalise(v);
  for (std::int64_t k = 1;; ++k) {
    Vector next = product(v);
    double const value = dot(v, next);
    double residual = 0;
    for (std::size_t i = 0; i < v.size(); ++i) residual += (next[i] - value * v[i]) * (next[i] - value * v[i]);
    residual = std::sqrt(residual);
    bool const done = residual <= tolerance * std::abs(value) || !std::isfinite(value);
    if (done || k == iterations) return {value, residual, k};
    for (std::size_t i = 0; i < v.size(); ++i) next[i] -= shift * v[i];
    normalise(next);
    v = std::move(next);
  }
}

/// One vector of all parameters' elements, in order.
Vector flattened(std::vector<Tensor> const& tensors) {
  Vector all;
  for (Tensor const& tensor : tensors) {
    auto const values = tensor.to_vector();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<Tensor> parted(Vector const& all, std::vector<Tensor> const& like) {
  std::vector<Tensor> tensors;
  auto begin = all.begin();
  for (Tensor const& tensor : like) {
    auto const end = begin + static_cast<std::ptrdiff_t>(tensor.elements());
    tensors.push_back(Tensor::of(Vector(begin, end), tensor.shape(), DType::float64).to(tensor.dtype()));
    begin = end;
  }
  return tensors;
}

DeclaredProbe const sharpness{
    {"curvature", "sharpness", "λ_max(∂²L/∂θ²)",
     "by power iteration on Hessian-vector products; beside it its error, sharpness.residual = ‖Hv − λv‖", Probe::Sees::loss,
     [](Probed const& probed, Row& row) {
       std::vector<Tensor> parameters;
       for (auto const& [name, parameter] : probed.parameters.all()) parameters.push_back(parameter);
       auto const gradient = grad({probed.loss()}, parameters, {}, true);
       Product const product = [&](Vector const& v) { return flattened(grad(gradient, parameters, parted(v, parameters))); };
       Vector const start = Tensor::normal({probed.parameters.elements()}, Stream(0, "probe.curvature"), DType::float64).to_vector();
       auto const found = largest_eigenvalue(product, start, probed.settings.iterations, probed.settings.tolerance);
       row.set("probe.curvature.sharpness", found.value);
       row.set("probe.curvature.sharpness.residual", found.residual);
     }}};

}  // namespace

Eigenvalue largest_eigenvalue(Product const& product, Vector start, std::int64_t iterations, double tolerance) {
  auto const outermost = farthest_from(0, product, start, iterations, tolerance);
  if (!(outermost.value < 0)) return outermost;
  auto largest = farthest_from(outermost.value, product, std::move(start), iterations, tolerance);
  largest.products += outermost.products;
  return largest;
}

}  // namespace heed
