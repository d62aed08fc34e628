// Curvature of the loss during training (Cohen et al. 2021).

#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "autograd/graph.hpp"
#include "autograd/graph_memory.hpp"
#include "experiments/metric/probe/probe.hpp"

namespace heed {

namespace {

using Vector = std::vector<double>;
using Product = std::function<Vector(Vector const&)>;

double dot(Vector const& a, Vector const& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// A vector v and Hv.
struct Image {
  Vector x, hx;

  void add(double factor, Image const& other) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] += factor * other.x[i];
      hx[i] += factor * other.hx[i];
    }
  }
  void scale(double factor) {
    for (double& value : x) value *= factor;
    for (double& value : hx) value *= factor;
  }
};

using Matrix3x3 = std::array<std::array<double, 3>, 3>;

/// The eigenvector of a symmetric matrix for its largest eigenvalue, by Jacobi's rotations.
std::array<double, 3> top_eigenvector(Matrix3x3 a) {
  Matrix3x3 v{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  auto const rotate = [](double& x, double& y, double c, double s) {
    double const turned = c * x - s * y;
    y = s * x + c * y;
    x = turned;
  };
  for (int sweep = 0; sweep < 10; ++sweep) {
    for (auto const& [p, q] : {std::pair<std::size_t, std::size_t>{0, 1}, {0, 2}, {1, 2}}) {
      double const angle = 0.5 * std::atan2(2 * a[p][q], a[q][q] - a[p][p]), c = std::cos(angle), s = std::sin(angle);
      for (auto& row : a) rotate(row[p], row[q], c, s);
      for (std::size_t k = 0; k < 3; ++k) rotate(a[p][k], a[q][k], c, s);
      for (auto& row : v) rotate(row[p], row[q], c, s);
    }
  }
  std::size_t top = 0;
  for (std::size_t k = 1; k < 3; ++k) top = a[k][k] > a[top][top] ? k : top;
  return {v[0][top], v[1][top], v[2][top]};
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

Declared<Probe> const sharpness_probe{
    {"curvature",
     "sharpness",
     "λ_max(∂²L/∂θ²)",
     "the largest eigenvalue of the Hessian, from Hessian-vector products, and its error, sharpness.residual = ‖Hv − λv‖",
     {"curvature.sharpness", "", Better::lower, ""},
     Probe::Input::loss,
     [](Probed const& probed, Row& row) {
       ForSecondDerivatives const held_by_rows;
       auto const parameters = mapped(probed.parameters.all(), [](auto const& named) { return named.second; });
       auto const gradient = grad({probed.loss()}, parameters, {}, true);
       Product const product = [&](Vector const& v) { return flattened(grad(gradient, parameters, parted(v, parameters))); };
       Vector const start = Tensor::normal({probed.parameters.elements()}, Stream(0, "probe.curvature"), DType::float64).to_vector();
       auto const found = largest_eigenvalue(product, start, probed.settings.iterations, probed.settings.tolerance);
       row.set("probe.curvature.sharpness", found.value);
       row.set("probe.curvature.sharpness.residual", found.residual);
     }}};

Declared<MetricInfo> const residual_metric{
    {"probe.curvature.sharpness.residual", "", Better::lower, "‖Hv − λv‖, the error of probe.curvature.sharpness"}};

}  // namespace

Eigenvalue largest_eigenvalue(Product const& product, Vector start, Index iterations, double tolerance) {
  auto const norm = [](Vector const& v) { return std::sqrt(dot(v, v)); };
  double const length = norm(start);
  for (double& x : start) x /= length;
  Image best{start, product(start)};
  std::optional<Image> step;  // the last one, of length 1 and across best and the residual
  for (Index products = 1;; ++products) {
    double const value = dot(best.x, best.hx);
    Vector residual = best.hx;
    for (std::size_t i = 0; i < residual.size(); ++i) residual[i] -= value * best.x[i];
    double const error = norm(residual);
    if (error <= tolerance * std::abs(value) || products == iterations || !std::isfinite(value)) return {value, error, products};

    for (double& x : residual) x /= error;
    Image const up{residual, product(residual)};
    if (step) {
      double const before = norm(step->x);
      step->add(-dot(step->x, best.x), best);
      step->add(-dot(step->x, up.x), up);
      double const left = norm(step->x);
      if (left > 1e-6 * before)
        step->scale(1 / left);
      else
        step.reset();
    }
    std::array<Image const*, 3> const basis{&best, &up, step ? &*step : &up};
    Matrix3x3 h;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = i; j < 3; ++j) h[i][j] = h[j][i] = dot(basis[i]->x, basis[j]->hx);
    if (!step) h[0][2] = h[2][0] = h[1][2] = h[2][1] = 0, h[2][2] = value - 1;  // never the largest
    auto const [a, b, c] = top_eigenvector(h);
    Image next = up;
    next.scale(b);
    if (step) next.add(c, *step);
    step = next;
    next.add(a, best);
    next.scale(1 / norm(next.x));
    best = std::move(next);
  }
}

}  // namespace heed
