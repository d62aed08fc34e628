#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/blas/products.hpp"
#include "experiments/config/config.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/tokenizer.hpp"
#include "experiments/metric/probe/settings.hpp"
#include "experiments/program/run_options.hpp"
#include "experiments/train/selection.hpp"
#include "nn/adapters.hpp"
#include "nn/files/checkpoint.hpp"
#include "nn/model.hpp"
#include "nn/optimizer.hpp"
#include "nn/parameters.hpp"
#include "nn/schedule.hpp"

namespace heed {

/// `evaluate:` when and on how much validation data.
struct EvaluateSettings : Settings {
  Index every = 250;
  std::string batches = "all";         ///< all, or the number of batches, from the first
  std::optional<Index> batch;          ///< sequences per batch; default: the training batch
  std::vector<std::string> metrics;    ///< in addition to those that are always recorded
  std::vector<std::string> zero_shot;  ///< files that describe multiple-choice data
  std::vector<double> lengths;         ///< further lengths of sequences, in tokens, at which the loss is measured; integers
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  /// Number of batches to evaluate, out of `available`.
  Index count(Index available) const;
};

/// `checkpoint:` when a run is saved.
struct CheckpointSettings : Settings {
  Index every = 500;
  std::vector<Field> fields() override;
};

/// `log:` what a run records while it trains.
struct LogSettings : Settings {
  Index every = 1;
  bool tensorboard = false;
  std::vector<Field> fields() override;
};

/// `train:` how the model is trained.
struct TrainSettings : Settings {
  Index steps = 1000;
  Index batch = 12;
  Index accumulate = 1;
  Choice optimizer = optimizer_choice();
  Choice schedule = schedule_choice();
  std::optional<double> clip, qk_clip;
  double label_smoothing = 0;
  EvaluateSettings evaluate;
  CheckpointSettings checkpoint;
  std::string keep = "last";  ///< weights that a finished run returns: the last, or the best by `select`
  SelectSettings select;
  StopSettings stop;
  LogSettings log;
  std::optional<double> ema;
  bool recompute = false;
  std::string from;  ///< `continue`: a run that this one goes on from
  AdapterSettings adapters;
  std::optional<std::string> precision;  ///< type of the factors of matrix products; none: dtype
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool keeps_best() const { return keep == "best"; }
};

/// A whole configuration file of one run.
struct Experiment : Settings {
  std::string name = "run";
  Index seed = 1;
  std::string dtype = "float32";
  Choice data = choice_of<DataKind>();
  Choice model = model_choice();
  InitSettings init;
  TrainSettings train;
  ProbeSettings probes;
  std::vector<Field> fields() override;

  std::optional<std::string> contradiction() override;

  /// How matrices are multiplied.
  Products products() const { return {.bfloat16 = train.precision == "bfloat16"}; }
  DType precision() const { return dtype == "float64" ? DType::float64 : DType::float32; }
};

/// A configuration file with its overrides, and the settings filled from it.
struct LoadedExperiment {
  Document document;
  Experiment settings;
  Folders folders;
  /// Throws ConfigError "KEY: why" at the location of a key, or of an item of its list.
  [[noreturn]] void refuse(std::string const& key, std::string const& why, std::optional<std::size_t> item = {}) const;
};
/// Reads a configuration file and applies the overrides. Throws ConfigError.
LoadedExperiment load_experiment(std::filesystem::path const& file, std::vector<std::string> const& overrides, Folders folders);

/// A trained model from a run's folder.
struct TrainedModel {
  std::filesystem::path path;  ///< that open_run() was given: its folder, or its checkpoint
  Experiment settings;
  std::unique_ptr<Parameters> parameters;
  std::unique_ptr<Model> model;
  Signature data;
  std::string tokenizer, source_tokenizer;  ///< as Dataset returned them; empty if the data had none
  ReadFiles files_read;                     ///< files read in training
  std::vector<std::string> classes;         ///< names of the labels; empty if the data had none
  Index step = 0;
  bool foreign = false;  ///< another program's model: no run of heed made it, and its data are unknown
  std::string weights;   ///< which weights: "last", "averaged", "best"
  /// "runs/tiny: weights of step 40, the best by validation.loss"; "" unless the weights are the best.
  std::string weights_note() const;
  std::filesystem::path folder() const { return std::filesystem::is_directory(path) ? path : path.parent_path(); }
};
/// The path of a run's folder, its checkpoint.safetensors or its best.safetensors: as given, or inside the output folder. Throws
/// ConfigError if there is no such run.
std::filesystem::path find_run(std::filesystem::path const& run, Folders const& folders);
/// Opens the checkpoint in a run's folder, or another program's model in its folder (open_foreign_model). `weights`: those after the last
/// update ("last"), their running average ("average": train.ema), or those of the best evaluation ("best": train.keep); "": the best if the
/// run keeps them, else the average if it keeps one, else the last. A path to best.safetensors or checkpoint.safetensors instead of a
/// folder says whether the best are meant. `dtype`: of the weights; default: as in training. Throws FileError if there is no checkpoint
/// (naming trials for an ablation's folder) or if it does not fit its configuration; ConfigError for weights that the run does not keep.
TrainedModel open_run(std::filesystem::path const& folder, std::string weights = "", std::optional<DType> dtype = {});
/// The same of a run that is found by find_run().
TrainedModel open_run(ChosenRun const& chosen, std::optional<DType> dtype = {});
/// The data that a run was trained on, read again, with `split` held out. Throws ConfigError if the data have no such split, FileError if
/// they do not exist or differ from those of the training.
std::unique_ptr<Dataset> data_of(TrainedModel const& run, Folders const& folders, std::string const& split = "validation",
                                 bool quiet = true);
/// The examples of another file as held-out data of a run (open_examples_of).
std::unique_ptr<Dataset> data_of_file(TrainedModel const& run, std::filesystem::path const& file, bool labelled);
/// The keys whose values differ between a stored configuration and these settings. A key that is missing in the stored one has its default:
/// an earlier revision of heed wrote it. train.log.tensorboard may differ: it affects no result.
std::vector<std::string> keys_changed(Yaml const& kept, Experiment& settings);
/// Throws FileError "PATH: …" with the keys if the checkpoint was written with other settings. train.steps and probes may differ.
void check_configuration(Checkpoint const& checkpoint, Experiment settings, std::string const& path);
/// The tokenizer of the run's data, for the part "inputs" or "source". Throws FileError "PATH: …" if it does not fit the model.
std::shared_ptr<Tokenizer const> tokenizer_of(TrainedModel const& run, std::string const& part = "inputs");

}  // namespace heed
