#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "autograd/memory.hpp"
#include "experiments/data/files.hpp"
#include "experiments/folder/record.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/train/contexts.hpp"
#include "experiments/train/experiment.hpp"
#include "experiments/train/gradient_sum.hpp"
#include "experiments/train/weights.hpp"
#include "experiments/train/zero_shot.hpp"
#include "nn/adapters.hpp"
#include "nn/estimator.hpp"
#include "nn/files/checkpoint.hpp"
#include "nn/qk_clip.hpp"

namespace heed {

/// What a run goes on from (`train.continue`): another run's weights, optimizer, data position and random state.
struct ContinuedRun {
  std::filesystem::path folder;
  HashedFile file;  ///< its checkpoint
  Checkpoint checkpoint;
  double rate;  ///< learning rate of its last update
};

/// A limit of the memory that this machine has available now.
MemoryLimit within_available_memory();
/// Calls f and converts its Errors to ConfigErrors at the location of the key that the message begins with, else of `section`; OutOfMemory
/// to one at the location of the batch's size, unless the system refused the memory.
void judging(Document const& document, std::string const& section, std::function<void()> const& f);

/// A model in training: data, parameters, optimizer, and the number of updates made. If several ranks train together, all have the same
/// model and make the same updates; each computes its part of a step's micro-batches.
class Trainer {
 public:
  /// Sets everything up for step 0, and tries that step. Throws FileError for damaged data or checkpoints, ConfigError for settings
  /// that do not fit together or do not fit into memory.
  explicit Trainer(LoadedExperiment const& experiment, bool quiet);

  /// Updates made so far.
  Index step() const { return step_; }
  bool finished() const { return step_ >= settings_.train.steps; }
  Dataset const& data() const { return *data_; }
  Model const& model() const { return *model_; }
  Parameters const& parameters() const { return parameters_; }
  /// Remarks on the data and on valid settings that are probably not intended, with their location in the file, a line each.
  std::optional<std::string> remark() const;
  /// What `init.from` did not take unchanged, and the keys in which the model differs from that of the weights; "": neither.
  std::string const& start_remark() const { return start_remark_; }
  /// What the run goes on from (train.continue), without its tensors.
  std::optional<ContinuedRun> const& continued() const { return continued_; }
  /// What the optimizer trains: all parameters, or the adapters.
  Parameters const& trained() const { return adapters_ ? adapters_->trained() : parameters_; }
  /// Those of these keys that init.changed does not name.
  std::vector<ChangedKey> const& unexpected_changes() const { return unexpected_; }
  /// Tokens of "inputs", without padding, that this object's updates have read.
  Index tokens_read() const { return tokens_read_; }
  /// "768 tokens a step", or "at most …" if sequences differ in length.
  std::string tokens_in_words() const;

  /// One update. Sets `loss`, `grad_norm` and `lr` in the row: the values of batch step() before the update. Throws TrainingError if loss
  /// or gradient is not finite, naming step, operation and layer.
  void train_step(Row& row, Observer const* observer = nullptr);
  /// Length of the longest chain of operations behind the loss of update step(), in operations (see heed::critical_path()).
  Index critical_path();
  /// Of update `step` in a training of `steps` updates.
  double learning_rate_at(Index step, Index steps) const;
  /// Measures at most so many validation batches, as `validation.…` and, with averaged weights, `validation.ema.…`; if the lowest possible
  /// loss is known, also `validation.excess`, the difference to it. Sets nothing if there are no validation data.
  void evaluate(Row& row, Index max_batches = std::numeric_limits<Index>::max());
  /// Losses to compare that of evaluate() with, on the same sequences.
  std::vector<std::pair<std::string, double>> reference_losses() const;
  /// Throws ConfigError at this location if neither training nor an evaluation nor a probe of this run records a metric.
  void require_metric(Location const& location, std::string const& metric);
  /// The files of the data and of zero-shot evaluations, and "init.from", the initial weights.
  ReadFiles const& files_read() const { return files_read_; }
  /// Measures the loss at other lengths of sequences (train.evaluate.lengths).
  Contexts const& contexts() const { return *contexts_; }

  /// A checkpoint of the weights that train.select evaluates, the current or the averaged ones. Throws TrainingError as checkpoint().
  Checkpoint best(Selection::Best const& chosen);
  /// Loads the folder's best weights into the parameters. Throws FileError.
  void take_best(std::filesystem::path const& folder);

  /// Everything needed to resume. Throws TrainingError if a parameter is not finite, so that the last good checkpoint is not replaced.
  Checkpoint checkpoint() const;
  /// Throws FileError if the checkpoint does not belong to this experiment; FolderError if a file that was read has changed since, if it is
  /// beyond train.steps, or was made on another machine, with other threads or another matrix library (the bits would differ).
  void resume(Checkpoint const& checkpoint, std::filesystem::path const& folder);

 private:
  Pass pass_for(Index micro_batch, Observer const* observer) const;
  StepResults accumulate_gradients(bool shared, Observer const* observer = nullptr);
  [[noreturn]] void diagnose(std::string const& what);
  /// Rows of a validation batch, and the number of batches that are evaluated.
  Index validation_rows() const { return settings_.train.evaluate.batch.value_or(settings_.train.batch); }
  Index validation_batches() const;
  void validate(Row& row, std::string const& prefix, Index most) const;
  void start();
  void go_on();
  void try_step();
  void load_state(Checkpoint const& checkpoint, std::filesystem::path const& folder);
  void check_parameters() const;
  void check_data() const;
  void check_probes() const;
  void check_estimator() const;
  void check_selection();
  void make_optimizer();
  std::vector<std::string> evaluated(std::string const& metric);
  Checkpoint weights() const;

  Training training(Index steps) const;

  LoadedExperiment const& experiment_;
  Experiment const& settings_;
  std::unique_ptr<Dataset> data_;
  Parameters parameters_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Adapters> adapters_;
  std::optional<AverageWeights> average_;
  std::optional<QueryKeyClip> qk_clip_;
  ReadFiles files_read_;
  std::optional<ContinuedRun> continued_;
  std::string start_remark_;
  std::vector<ChangedKey> unexpected_;
  std::optional<Estimator> estimator_;      ///< if the model makes random choices
  std::vector<MetricKind const*> metrics_;  ///< measured in evaluations
  std::optional<Contexts> contexts_;
  std::optional<ZeroShot> zero_shot_;
  Stream noise_;
  Index step_ = 0, tokens_read_ = 0;
};

/// Compares, over all ranks, everything on which a run depends: the program and the kernels that it uses on this processor, the settings by
/// key, the content of every file that was read, the initial weights, the run's folder, and its checkpoint, unless the run begins anew
/// (`fresh`). All ranks call it, before anything is written. Throws ConfigError, in all of them, naming what differs and each rank's value;
/// also if train.accumulate cannot be divided by their number.
void check_same_run(Trainer const& trainer, LoadedExperiment& experiment, std::filesystem::path const& folder, bool fresh);

}  // namespace heed
