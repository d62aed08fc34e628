#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
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
#include "experiments/run/selection.hpp"
#include "nn/files/checkpoint.hpp"
#include "nn/model.hpp"
#include "nn/optimizer.hpp"
#include "nn/parameters.hpp"
#include "nn/schedule.hpp"

namespace heed {

/// `evaluate:` when and on how much validation data.
struct EvaluateSettings : Settings {
  std::int64_t every = 250;
  std::string batches = "all";         ///< all, or how many of the first
  std::optional<std::int64_t> batch;   ///< rows at once; default: the training batch
  std::vector<std::string> metrics;    ///< beside those that are always there
  std::vector<std::string> zero_shot;  ///< files that describe multiple choices
  std::vector<double> lengths;         ///< of rows that the loss is measured in besides; whole numbers
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  /// How many of `available` batches to take.
  std::int64_t count(std::int64_t available) const;
};

/// A section of one key: `checkpoint: {every: 500}`.
struct EverySettings : Settings {
  EverySettings(std::int64_t steps, std::string what) : every(steps), help(std::move(what)) {}
  std::int64_t every;
  std::string help;
  std::vector<Field> fields() override;
};

/// `log:` what a run records while it trains.
struct LogSettings : Settings {
  std::int64_t every = 1;
  bool tensorboard = false;
  std::vector<Field> fields() override;
};

/// `train:`.
struct TrainSettings : Settings {
  std::int64_t steps = 1000;
  std::int64_t batch = 12;
  std::int64_t accumulate = 1;
  Choice optimizer = optimizer_choice();
  Choice schedule = schedule_choice();
  std::optional<double> clip;
  double label_smoothing = 0;
  EvaluateSettings evaluate;
  EverySettings checkpoint{500, "steps between checkpoints; one is always made at the end"};
  std::string keep = "last";  ///< which weights a finished run gives: the last, or the best by `select`
  SelectSettings select;
  StopSettings stop;
  LogSettings log;
  std::optional<double> ema;
  bool recompute = false;
  std::optional<std::string> precision;  ///< of the factors of matrix products; none: dtype
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool keeps_best() const { return keep == "best"; }
};

/// A whole configuration file of one run.
struct Experiment : Settings {
  std::string name = "run";
  std::int64_t seed = 1;
  std::string dtype = "float32";
  Choice data = choice_of<DataKind>();
  Choice model = model_choice();
  InitSettings init;
  TrainSettings train;
  ProbeSettings probes;
  std::vector<Field> fields() override;

  std::optional<std::string> contradiction() override;

  /// How its matrices are multiplied.
  Products products() const { return {.bfloat16 = train.precision == "bfloat16"}; }
  DType precision() const { return dtype == "float64" ? DType::float64 : DType::float32; }
};

/// Where a command looks for things.
struct Places {
  std::filesystem::path output = "runs";
  std::filesystem::path data;           ///< `--data`; empty: $HEED_DATA, then the cache folder
  std::filesystem::path config_folder;  ///< of the file, for paths in it
  std::filesystem::path runs = {};      ///< where a run that a file names is looked for; empty: in `output`
};

/// A file and its overrides as a filled experiment. Throws ConfigError.
struct LoadedExperiment {
  Document document;
  Experiment settings;
  Places places;
};
LoadedExperiment load_experiment(std::filesystem::path const& file, std::vector<std::string> const& overrides, Places places);

/// A trained model as a run left it: for sampling, inspection and export.
struct TrainedModel {
  Experiment settings;
  std::unique_ptr<Parameters> parameters;
  std::unique_ptr<Model> model;
  Signature data;
  std::string tokenizer, source_tokenizer;  ///< as Dataset gave them; empty if the data had none
  ReadFiles files_read;                     ///< in training
  std::vector<std::string> classes;         ///< that labels are of; empty if the data had none
  std::int64_t step = 0;
  bool averaged = false;  ///< the weights are their running average
  bool foreign = false;   ///< another program's: no run of heed made it, and its data are not known
  std::string weights;    ///< which they are: "last", "averaged", "best"
  /// "runs/tiny: weights of step 40, the best by validation.loss", for who has not asked for them; "" of others than the best.
  std::string said(std::filesystem::path const& path) const;
};
/// A run's folder, its checkpoint.safetensors or its best.safetensors: the path as given, or inside the output folder. Throws ConfigError
/// if there is no such run.
std::filesystem::path find_run(std::filesystem::path const& run, Places const& places);
/// The config.yaml that a run left in its folder. Throws ConfigError as load(), FileError if it is a pipe or a device.
Document load_kept(std::filesystem::path const& folder);
/// The weights as the last update left them, their running average (train.ema), or those of the best evaluation (train.keep: best). Usual:
/// the best where the run keeps them, else the average where it keeps one, else the last.
enum class Weights { usual, last, average, best };
/// Of "last", "average", "best" or "".
Weights weights_named(std::string const& word);
/// Opens the checkpoint in a run's folder, or the model in a folder of another program's (open_foreign_model), with numbers of the type
/// that they were trained in, or of this one; a file that is named instead says whether it is the best one. Throws FileError if there is
/// none, naming trials if it is an ablation's folder, or if it does not fit its configuration; ConfigError for weights that the run does
/// not keep.
TrainedModel open_run(std::filesystem::path const& folder, Weights weights = Weights::usual, std::optional<DType> dtype = {});
/// The keys to which a kept configuration gives other values than these settings. A key that it lacks has its default: an earlier revision
/// of heed made it. train.log.tensorboard may differ: nothing that is measured depends on it.
std::vector<std::string> keys_changed(Yaml const& kept, Experiment& settings);
/// Throws FileError, which begins with `path`, if the checkpoint was written with other settings: names the keys. train.steps and probes
/// may differ.
void check_configuration(Checkpoint const& checkpoint, Experiment settings, std::string const& path);
/// What the run that wrote a checkpoint had read, as its metadata say. Throws FileError for metadata that say it in no JSON.
ReadFiles files_read_by(std::map<std::string, std::string> const& metadata);
/// What the run in a folder has read, as its summary says, or its checkpoint where it is not finished; nothing where neither can be read.
ReadFiles files_read_in(std::filesystem::path const& folder);
/// What made tokens of the run's data, of the part "inputs" or "source". Throws FileError that begins with `path` if it does not belong to
/// the model.
std::shared_ptr<Tokenizer const> tokenizer_of(TrainedModel const& run, std::string const& path, std::string const& part = "inputs");

}  // namespace heed
