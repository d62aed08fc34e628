#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/model.hpp"

namespace heed {

/// Cross entropy of the targets that count, by position in the sequence.
class LossByPosition : public Metric {
 public:
  struct MeanLoss {
    Index count = 0;
    double mean = 0, squares = 0;  ///< of the losses, and the sum of squared deviations from the mean

    /// The standard error of the mean; NaN for fewer than two losses.
    double standard_error() const;
  };

  void observe(Batch const& batch, Index first, Tensor const& logits) override;
  void add(EvaluatedBatch const&) override {}
  void write(Row&, std::string const&) const override {}

  /// From position 0 on, as many as the longest sequence has.
  std::vector<MeanLoss> const& positions() const { return positions_; }

 private:
  std::vector<MeanLoss> positions_;
};

/// The held-out data in sequences of other lengths than in training, `train.evaluate.lengths`: a text is cut anew, a task draws sequences.
class Contexts {
 public:
  /// Throws ConfigError at the location of a length that the model cannot read or that the data do not support.
  Contexts(LoadedExperiment const& experiment, Dataset const& data, Model const& model);

  /// Evaluates the metrics on sequences of a length, of at most `most` batches.
  void evaluate(EvaluatedBatch::Metrics const& metrics, Index length, Index most = std::numeric_limits<Index>::max()) const;
  /// Adds loss and accuracy at each length, with the current weights, as PREFIX.loss.length128, PREFIX.accuracy.length128.
  void measure(Row& row, std::string const& prefix) const;
  /// Writes `loss_by_position.csv` into a run's folder if a length was requested, for the longest and the trained one: length, position,
  /// loss, standard_error (for independent losses; NaN for a single one), count. Throws Error.
  void write(std::filesystem::path const& folder) const;

 private:
  Experiment const& settings_;
  Dataset const& data_;
  Model const& model_;
};

}  // namespace heed
