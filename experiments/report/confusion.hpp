#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/report/figure.hpp"

namespace heed {

/// How often each label was taken for which class.
struct Confusion {
  std::vector<std::string> classes;
  std::vector<Index> counts = {};  ///< [label, prediction], row by row

  explicit Confusion(std::vector<std::string> names) : classes(std::move(names)), counts(classes.size() * classes.size()) {}
  Index& at(std::size_t label, std::size_t predicted) { return counts[label * classes.size() + predicted]; }
  Index at(std::size_t label, std::size_t predicted) const { return counts[label * classes.size() + predicted]; }

  /// Rows are labels with their number of examples, columns predictions; at the edges recall and precision. "–" where there are none.
  std::vector<std::vector<std::string>> rows() const;
  /// A cell's colour is its share of the label's examples, its number how many there are. Nothing for too many classes.
  std::optional<Figure> figure() const;
};

/// Counts the most probable class of every labelled example.
class ConfusionMetric : public Metric {
 public:
  explicit ConfusionMetric(std::vector<std::string> classes) : confusion_(std::move(classes)) {}
  void add(EvaluatedBatch const& batch) override;
  void write(Row&, std::string const&) const override {}
  Confusion const& counts() const { return confusion_; }

 private:
  Confusion confusion_;
};

}  // namespace heed
