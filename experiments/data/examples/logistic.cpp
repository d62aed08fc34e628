#include "experiments/data/examples/logistic.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>

namespace heed {
namespace {

using Vector = std::vector<double>;

double dot(Vector const& a, Vector const& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// a + scale · b
Vector moved(Vector a, double scale, Vector const& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += scale * b[i];
  return a;
}

/// A step of the last few: how the point and its gradient changed.
struct LbfgsStep {
  Vector point, gradient;
  double curvature;  ///< their product
};

/// −H⁻¹ gradient by the two-loop recursion (Nocedal & Wright 2006, algorithm 7.4).
Vector direction(Vector gradient, std::deque<LbfgsStep> const& steps) {
  Vector shares(steps.size());
  for (std::size_t i = steps.size(); i-- > 0;) {
    shares[i] = dot(steps[i].point, gradient) / steps[i].curvature;
    gradient = moved(std::move(gradient), -shares[i], steps[i].gradient);
  }
  double const scale = steps.empty() ? 1 : steps.back().curvature / dot(steps.back().gradient, steps.back().gradient);
  for (double& g : gradient) g *= scale;
  for (std::size_t i = 0; i < steps.size(); ++i)
    gradient = moved(std::move(gradient), shares[i] - dot(steps[i].gradient, gradient) / steps[i].curvature, steps[i].point);
  for (double& g : gradient) g = -g;
  return gradient;
}

/// Where a smooth convex function is least, from zero on. `value` fills in the gradient.
Vector least(std::size_t size, std::function<double(Vector const& point, Vector& gradient)> const& value) {
  constexpr int most_steps = 200, remembered = 10;
  Vector point(size), gradient(size), next_gradient(size);
  double now = value(point, gradient);
  std::deque<LbfgsStep> steps;
  for (int step = 0; step < most_steps; ++step) {
    auto const towards = direction(gradient, steps);
    double const slope = dot(towards, gradient);
    if (slope > -1e-8 * std::max(1.0, std::abs(now))) break;  // what is left to gain
    double length = 1, next = 0;
    Vector candidate;
    for (int halvings = 0; halvings < 40; ++halvings, length /= 2) {  // until it falls enough (Armijo)
      candidate = moved(point, length, towards);
      next = value(candidate, next_gradient);
      if (next <= now + 1e-4 * length * slope) break;
    }
    if (!(next < now)) break;
    LbfgsStep made{moved(candidate, -1, point), moved(next_gradient, -1, gradient), 0};
    made.curvature = dot(made.point, made.gradient);
    if (made.curvature > 0) steps.push_back(std::move(made));
    if (steps.size() > remembered) steps.pop_front();
    point = std::move(candidate);
    std::swap(gradient, next_gradient);
    now = next;
  }
  return point;
}

/// W x + b, as log probabilities.
void log_softmax(double const* weights, std::int64_t features, std::int64_t classes, SparseRow const& row, Vector& result) {
  result.assign(weights + features * classes, weights + (features + 1) * classes);
  for (auto const& [feature, x] : row) {
    if (feature >= features) continue;
    for (std::int64_t c = 0; c < classes; ++c) result[static_cast<std::size_t>(c)] += x * weights[feature * classes + c];
  }
  double const most = *std::ranges::max_element(result);
  double sum = 0;
  for (double const value : result) sum += std::exp(value - most);
  for (double& value : result) value -= most + std::log(sum);
}

}  // namespace

LogisticRegression LogisticRegression::fitted(std::span<SparseRow const> rows, std::span<std::int64_t const> labels, std::int64_t features,
                                              std::int64_t classes, double l2) {
  LogisticRegression model;
  model.features_ = features;
  model.classes_ = classes;
  auto const penalised = static_cast<std::size_t>(features * classes);
  Vector scores;
  model.weights_ = least(penalised + static_cast<std::size_t>(classes), [&](Vector const& weights, Vector& gradient) {
    std::ranges::fill(gradient, 0);
    double loss = 0;
    double const share = 1 / static_cast<double>(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      log_softmax(weights.data(), features, classes, rows[i], scores);
      loss -= share * scores[static_cast<std::size_t>(labels[i])];
      for (double& score : scores) score = share * std::exp(score);
      scores[static_cast<std::size_t>(labels[i])] -= share;
      auto const add = [&](std::int64_t feature, double x) {
        for (std::int64_t c = 0; c < classes; ++c)
          gradient[static_cast<std::size_t>(feature * classes + c)] += x * scores[static_cast<std::size_t>(c)];
      };
      for (auto const& [feature, x] : rows[i]) add(feature, x);
      add(features, 1);
    }
    for (std::size_t i = 0; i < penalised; ++i) {
      loss += 0.5 * l2 * weights[i] * weights[i];
      gradient[i] += l2 * weights[i];
    }
    return loss;
  });
  return model;
}

std::vector<double> LogisticRegression::log_probabilities(SparseRow const& row) const {
  Vector result;
  log_softmax(weights_.data(), features_, classes_, row, result);
  return result;
}

ClassScores scores_of(LogisticRegression const& model, std::span<SparseRow const> rows, std::span<std::int64_t const> labels) {
  ClassScores scores;
  auto const share = 1 / static_cast<double>(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto const found = model.log_probabilities(rows[i]);
    if (std::ranges::max_element(found) - found.begin() == labels[i]) scores.accuracy += share;
    scores.loss -= share * found[static_cast<std::size_t>(labels[i])];
  }
  return scores;
}

}  // namespace heed
