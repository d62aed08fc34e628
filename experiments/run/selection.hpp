#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/metric/info.hpp"
#include "experiments/metric/row.hpp"
#include "nn/settings.hpp"

namespace heed {

/// `select:` the value of an evaluation by which `keep: best` chooses.
struct SelectSettings : Settings {
  std::string metric = "validation.loss";
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  /// Whether it is one of the running average of the weights.
  bool averaged() const { return metric.starts_with("validation.ema."); }
};

/// `stop:` when a run ends before its last step (early stopping).
struct StopSettings : SelectSettings {
  std::optional<std::int64_t> patience;  ///< nothing: it does not
  double least = 0;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// The evaluations of a run so far: which is the best one, and whether the run is to end. It depends on their values alone, so that a run
/// which goes on learns it from its rows.
class Selection {
 public:
  struct Best {
    std::int64_t step = 0;
    double value = 0;
    Row row{};  ///< all of that evaluation
  };

  Selection(SelectSettings select, StopSettings stop) : select_(std::move(select)), stop_(std::move(stop)) {}

  /// Takes in the next row; one without the metrics is passed over. Whether it is the best evaluation so far: of equal ones the first is,
  /// and NaN is worse than any number.
  bool add(Row const& row);
  std::optional<Best> const& best() const { return best_; }
  /// How many evaluations there were.
  std::int64_t evaluations() const { return evaluations_; }
  /// Why the run ends after the last row, in words: since the last evaluation that was better by `least` than the one before that counted
  /// so, there were `patience` that were not. Nothing: it goes on.
  std::optional<std::string> stop() const;

 private:
  void count(Row const& row);

  SelectSettings select_;
  StopSettings stop_;
  std::optional<Best> best_;
  std::int64_t evaluations_ = 0;
  std::optional<double> reference_;  ///< of stop
  std::int64_t reference_step_ = 0, without_ = 0;
};

}  // namespace heed
