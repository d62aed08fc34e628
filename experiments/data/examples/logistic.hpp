#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace heed {

/// The features of a row and their values.
using SparseRow = std::vector<std::pair<std::int32_t, double>>;

/// Multinomial logistic regression over sparse features: p(class | x) = softmax(W x + b).
class LogisticRegression {
 public:
  /// Minimises the mean of −log p over the rows plus l2/2 ‖W‖², by L-BFGS (Nocedal 1980) from zero: the same weights every time.
  static LogisticRegression fitted(std::span<SparseRow const> rows, std::span<std::int64_t const> labels, std::int64_t features,
                                   std::int64_t classes, double l2);

  /// log p of every class. Features that did not occur in training are ignored.
  std::vector<double> log_probabilities(SparseRow const& row) const;

 private:
  std::int64_t features_ = 0, classes_ = 0;
  std::vector<double> weights_;  ///< [features + 1, classes], the last row holds the biases
};

/// Mean accuracy and mean −log p of the right classes.
struct ClassScores {
  double accuracy = 0, loss = 0;
};
ClassScores scores_of(LogisticRegression const& model, std::span<SparseRow const> rows, std::span<std::int64_t const> labels);

}  // namespace heed
