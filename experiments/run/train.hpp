#pragma once

#include <memory>
#include <optional>
#include <string>

#include "experiments/data/files.hpp"
#include "experiments/metric/metric.hpp"
#include "experiments/run/contexts.hpp"
#include "experiments/run/experiment.hpp"
#include "experiments/run/gradient_exchange.hpp"
#include "experiments/run/record.hpp"
#include "experiments/run/zero_shot.hpp"
#include "nn/estimator.hpp"
#include "nn/files/checkpoint.hpp"

namespace heed {

/// A model in training: data, parameters, optimizer, and how many updates have been made. Where several ranks train together, all have the
/// same model and make the same updates; of a step's micro-batches each makes its part.
class Trainer {
 public:
  /// Makes everything at step 0. Throws FileError for data and checkpoints that are wrong, ConfigError for what does not fit together or
  /// cannot fit into memory.
  explicit Trainer(LoadedExperiment const& experiment, bool quiet);

  /// Updates made so far.
  std::int64_t step() const { return step_; }
  bool finished() const { return step_ >= settings_.train.steps; }
  Dataset const& data() const { return *data_; }
  Model const& model() const { return *model_; }
  Parameters const& parameters() const { return parameters_; }
  /// What its user may not have meant, though nothing is wrong with it, with its place; nothing: there is nothing such.
  std::optional<std::string> remark() const;
  /// Tokens of "inputs" that the updates of this object have read, padding left out.
  std::int64_t tokens_read() const { return tokens_read_; }
  /// What the gradients' exchange with other ranks has cost this object's updates.
  ExchangeCost const& exchange_cost() const { return exchange_cost_; }
  /// "768 tokens a step", "at most …" where rows differ in length.
  std::string tokens_in_words() const;

  /// One update; sets `loss`, `grad_norm` and `lr` in the row: those of batch `step()` before the update. Throws TrainingError for
  /// a loss or gradient that is not finite, naming step, operation and layer.
  void train_step(Row& row, Observer const* observer = nullptr);
  /// Operations that the loss of update step() waits for one after the other (critical_path() of its graph).
  std::int64_t critical_path();
  /// Of update `step` in a training of `steps` updates.
  double learning_rate_at(std::int64_t step, std::int64_t steps) const;
  /// The metrics of the validation data with the weights as they are after step() updates, as `validation.…` and, with averaged weights,
  /// `validation.ema.…`; where the least possible loss is known, `validation.excess` over it. Sets nothing if there is no validation data.
  void evaluate(Row& row);
  /// The files of the data, and "init.from", which the weights started from.
  ReadFiles const& files_read() const { return files_read_; }
  /// The same in rows of other lengths, with the weights as they are.
  Contexts const& contexts() const { return *contexts_; }

  /// The weights by which train.select chooses, as they are now or averaged; with the row of the evaluation that chose them. Throws
  /// TrainingError as checkpoint().
  Checkpoint best(Selection::Best const& chosen);
  /// Takes them back from the folder: for what is made at the end. Throws FileError.
  void take_best(std::filesystem::path const& folder);

  /// All that is needed to go on. Throws TrainingError if a parameter is no longer finite: the last good checkpoint is not replaced.
  Checkpoint checkpoint() const;
  /// Goes on from a checkpoint. Throws FileError if it does not belong to this experiment, FolderError if what was read has changed since,
  /// or if it was made on another machine, thread count or matrix library (its bits could not be continued).
  void resume(Checkpoint const& checkpoint, std::filesystem::path const& folder);

 private:
  Pass pass_for(std::int64_t micro_batch, Observer const* observer) const;
  MicroBatches own_part(Observer const* observer) const;
  std::vector<Batch> micro_batches(MicroBatches const& part) const;
  Counts counts(std::vector<Batch> const& batches, bool shared);
  /// What the micro-batches of a step have besides gradients.
  struct Sums {
    std::vector<double> losses;  ///< of each micro-batch
    double tokens = 0;
    double loss() const;
  };
  Sums accumulate_gradients(MicroBatches const& part, Observer const* observer = nullptr);
  Sums gather(Sums own, GradientExchange& exchange);
  [[noreturn]] void diagnose(std::string const& what);
  void validate(Row& row, std::string const& prefix, std::int64_t count, std::int64_t rows) const;
  void measure_held_out(Row& row, std::int64_t count);
  void check_selection();
  Checkpoint weights() const;

  Training training(std::int64_t steps) const;

  LoadedExperiment const& experiment_;
  Experiment const& settings_;
  std::unique_ptr<Dataset> data_;
  Parameters parameters_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<AverageWeights> average_;
  ReadFiles files_read_;
  std::optional<Estimator> estimator_;      ///< if the model makes random choices
  std::vector<MetricKind const*> metrics_;  ///< of evaluations
  std::optional<Contexts> contexts_;
  std::optional<ZeroShot> zero_shot_;
  Stream noise_;
  ExchangeCost exchange_cost_;
  std::int64_t step_ = 0, tokens_read_ = 0;
};

}  // namespace heed
