#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/labels.hpp"
#include "experiments/report/figure.hpp"

namespace heed {

/// How often each label was taken for which class; as a metric, for which the most probable one of every labelled example.
struct Confusion : Metric {
  std::vector<std::string> classes;
  ConfusionMatrix counts;

  explicit Confusion(std::vector<std::string> names)
      : classes(std::move(names)), counts(classes.size(), std::vector<Index>(classes.size())) {}
  void add(EvaluatedBatch const& batch) override { add_labels(batch, counts); }
  void write(Row&, std::string const&) const override {}

  /// Rows are labels with their number of examples, columns predictions; at the edges recall and precision. "–" where there are none.
  std::vector<std::vector<std::string>> rows() const;
  /// A cell's colour is its share of the label's examples, its number how many there are. Nothing for too many classes.
  std::optional<Figure> figure() const;
};

}  // namespace heed
