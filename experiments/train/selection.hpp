#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/metric/info.hpp"
#include "experiments/metric/row.hpp"
#include "nn/settings.hpp"

namespace heed {

/// `select:` the evaluation metric by which `keep: best` chooses.
struct SelectSettings : Settings {
  std::string metric = "validation.loss";
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  /// Whether it is a metric of averaged weights.
  bool averaged() const { return MetricKey::of(metric).is_averaged(); }
};

/// `stop:` early stopping.
struct StopSettings : SelectSettings {
  std::optional<Index> patience;  ///< nothing: no early stopping
  double least = 0;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// A run's evaluations so far: which is the best, and whether to stop. A resumed run restores it from its rows.
class Selection {
 public:
  struct Best {
    Index step = 0;
    double value = 0;
    Row row{};  ///< of the best evaluation
  };

  Selection(SelectSettings select, StopSettings stop) : select_(std::move(select)), stop_(std::move(stop)) {}

  /// Adds the next row; rows without the metrics are skipped. Returns whether it is the best evaluation so far: the first of ties; NaN is
  /// worse than any number.
  bool add(Row const& row);
  std::optional<Best> const& best() const { return best_; }
  Index evaluations() const { return evaluations_; }
  /// Why the run stops: `patience` evaluations in a row did not improve by `least` on the last one that did. Nothing: it continues.
  std::optional<std::string> stop() const;

 private:
  SelectSettings select_;
  StopSettings stop_;
  std::optional<Best> best_, reference_;  ///< reference_: the last that improved by stop.least
  Index evaluations_ = 0, without_ = 0;
};

}  // namespace heed
