#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/metric/metric.hpp"
#include "experiments/run/experiment.hpp"
#include "nn/model.hpp"

namespace heed {

/// Cross entropy of the targets that count, by the place in the row at which they are predicted.
class LossByPlace : public Metric {
 public:
  struct PlaceLoss {
    std::int64_t count = 0;
    double mean = 0, squares = 0;  ///< of the losses, and the sum of the squares of what they are beside it

    /// Of the mean; NaN for fewer than two losses.
    double standard_error() const;
  };

  void observe(Batch const& batch, std::int64_t first, Tensor const& logits) override;
  void add(EvaluatedBatch const&) override {}
  void write(Row&, std::string const&) const override {}

  /// From the first place on, as many as the longest row has.
  std::vector<PlaceLoss> const& places() const { return places_; }

 private:
  std::vector<PlaceLoss> places_;
};

/// The held-out data in rows of other lengths than those of training: `train.evaluate.lengths`. Of a text it is the same stretch, cut into
/// longer rows or shorter ones; of a task they are rows of that length.
class Contexts {
 public:
  /// Throws ConfigError at the place of a length that the model cannot read, or that no rows of the data have.
  Contexts(LoadedExperiment const& experiment, Dataset const& data, Model const& model);

  /// The loss in rows of each length, with the weights as they are, as PREFIX.loss.length128.
  void measure(Row& row, std::string const& prefix) const;
  /// Leaves `loss_by_position.csv` in a run's folder, of the longest length and of the trained one, with the weights as they are: length,
  /// position, loss, standard_error (that of losses that do not depend on each other; NaN of one alone), count. Nothing if no length was
  /// asked for. Throws Error.
  void write(std::filesystem::path const& folder) const;

 private:
  /// Shows the metric what the model makes of the rows of a length.
  void read(std::int64_t length, Metric& metric) const;

  Experiment const& settings_;
  Dataset const& data_;
  Model const& model_;
};

/// Rows of a length that are read at once: as many tokens as of the trained one, so that so many batches are the same stretch of a text.
std::int64_t rows_at_once(TrainSettings const& train, std::int64_t context, std::int64_t length);

}  // namespace heed
