#include "experiments/train/experiment.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/config/nearest.hpp"
#include "experiments/data/examples/dataset.hpp"
#include "experiments/data/view.hpp"
#include "experiments/exchange/huggingface.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/train/weights.hpp"
#include "nn/files/json.hpp"
#include "nn/files/number.hpp"
#include "nn/models/blocks.hpp"
#include "nn/qk_clip.hpp"

namespace heed {

namespace {

constexpr double max_count = 1e12;  // upper limit of steps, sequences and tokens

/// Names of types with fewer than 32 bits, each with this advice.
std::map<std::string, std::string> of_fewer_bits(std::string const& advice) {
  std::map<std::string, std::string> all;
  for (char const* const name : {"float16", "fp16", "f16", "half", "bfloat16", "bf16", "float8", "fp8", "int8"}) all[name] = advice;
  return all;
}

std::optional<Index> positive_number(std::string const& text) {
  auto const number = parsed_number<Index>(text);
  return number && *number >= 1 ? number : std::nullopt;
}

/// Throws FileError if the folder contains folders of runs: that of an ablation, or an output folder.
void refuse_folder_of_runs(fs::path const& folder) {
  std::vector<std::string> runs;
  std::error_code unreadable;
  for (auto const& entry : fs::directory_iterator(folder, unreadable))
    if (fs::is_directory(entry.path(), unreadable) && has_checkpoint(entry.path())) runs.push_back(entry.path().string());
  if (runs.empty()) return;
  std::ranges::sort(runs);
  bool const ablation = fs::exists(folder / "ablation.yaml", unreadable);
  constexpr std::size_t max_shown = 3;
  auto const rest = runs.size() > max_shown ? fmt::format(" (and {} more)", runs.size() - max_shown) : "";
  runs.resize(std::min(runs.size(), max_shown));
  throw FileError(fmt::format("{}: is the folder of {}, such as {}{}", folder.string(),
                              ablation ? "an ablation: name one of its trials" : "several runs: name one of them", fmt::join(runs, ", "),
                              rest));
}

/// Replaces the parameters by their running average. Throws FileError, which begins with the path of the state's file, if the state has no
/// average or the average is not finite.
void take_average(TrainedModel& run, Checkpoint const& checkpoint, fs::path const& folder) try {
  AverageWeights average(*run.parameters, *run.settings.train.ema);
  NamedTensors state = checkpoint.state;  // in the type of the computation
  for (auto& [name, tensor] : state)
    if (tensor.dtype() != DType::int64) tensor = tensor.to(run.settings.precision());
  average.load_state(state);
  average.swap();
  if (auto const damage = find_non_finite(run.parameters->all())) throw Error("its running average: " + *damage);
} catch (Error const& error) {
  throw FileError(fmt::format("{}: {}", (folder / fmt::format("state-{}.safetensors", checkpoint.step)).string(), error.what()));
}

/// A stored configuration as this revision reads it, so that keys that an earlier revision wrote in another way, or did not know, make no
/// difference; unchanged if it cannot be read any more.
Yaml as_read_now(Yaml const& kept) try {
  Experiment experiment;
  fill({{}, kept}, experiment);
  return tree(experiment);
} catch (ConfigError const&) {
  return kept;
}

/// Parses a list of names in JSON. Throws FileError, which begins with `path`.
std::vector<std::string> names_in(std::string const& text, std::string const& path) try {
  return parse_json<nlohmann::json>(text, path + ": its classes");
} catch (nlohmann::json::exception const&) {
  throw FileError(fmt::format("{}: its classes are not a list of names", path));
}

/// The weights that are meant, if `named` is a checkpoint, a best.safetensors or a folder. Throws ConfigError for weights that the run does
/// not keep.
std::string chosen(std::string const& weights, fs::path const& named, fs::path const& folder, TrainSettings const& train) {
  bool const best = named.filename() == best_file("").filename(), whole = fs::is_directory(named);
  if (weights == "best" && !train.keeps_best())
    throw ConfigError("--weights", "best: the run does not keep its best weights (train.keep: best)");
  if (weights == "average" && !train.ema) throw ConfigError("--weights", "average: the run keeps no running average (train.ema)");
  if (!weights.empty()) return weights;
  if (best || (whole && train.keeps_best() && has_best(folder))) return "best";
  return train.ema ? "average" : "last";
}

/// A model from another program's folder as if a run had left it (read_gpt2), without data. Its numbers have the type of the file's, or
/// this one. Throws what read_gpt2() throws.
TrainedModel open_foreign_model(fs::path const& folder, std::optional<DType> dtype) {
  PortableModel const read = read_gpt2(folder);
  TrainedModel run;
  run.path = folder;
  run.foreign = true;
  run.weights = "last";
  run.settings.name = (folder / ".").lexically_normal().parent_path().filename().string();
  run.settings.model = read.model;
  run.settings.dtype = to_string(dtype.value_or(read.tensors.front().second.dtype()));
  run.data = signature_of(read);
  run.tokenizer = run.source_tokenizer = read.tokenizer;
  set_products(run.settings.products());
  run.parameters = std::make_unique<Parameters>(0, run.settings.precision());
  run.model = make_model(run.settings.model, *run.parameters, run.data);
  assign_from(read.origin, read.tensors, *run.parameters);
  return run;
}

}  // namespace

std::vector<Field> EvaluateSettings::fields() {
  return {
      field(&every, "every", "steps between evaluations; one is always made at the end").in(1, max_count),
      field(&batches, "batches", "all: all validation data; or the number of batches"),
      field(&batch, "batch", "sequences per batch; default: the training batch").in(1, max_count),
      field(&metrics, "metrics", "further metrics to record (heed list metrics, without validation.)")
          .one_of(Registry<MetricKind>::names()),
      field(&zero_shot, "zero_shot",
            "files that describe multiple-choice data (data: …), which a language model answers by likelihood; recorded as "
            "validation.zero_shot.FILE"),
      field(&lengths, "lengths",
            "further lengths of sequences, in tokens, at which loss and accuracy are measured, as validation.loss.lengthN and "
            "validation.accuracy.lengthN; the loss by position is in loss_by_position.csv")
          .in(1, 1 << 20)
          .integers(),
  };
}

std::optional<std::string> EvaluateSettings::contradiction() {
  for (double const length : lengths)
    if (std::ranges::count(lengths, length) > 1) return fmt::format("lengths: {} is listed twice", length);
  if (batches == "all" || positive_number(batches)) return std::nullopt;
  return fmt::format("batches: '{}' is neither 'all' nor a number from 1 on", batches);
}

Index EvaluateSettings::count(Index available) const {
  return batches == "all" ? available : std::min(available, positive_number(batches).value_or(available));
}

std::vector<Field> CheckpointSettings::fields() {
  return {field(&every, "every", "steps between checkpoints; one is always made at the end").in(1, max_count)};
}

std::vector<Field> LogSettings::fields() {
  return {
      field(&every, "every", "steps between rows of metrics.jsonl").in(1, max_count),
      field(&tensorboard, "tensorboard", "also write every row into an event file for TensorBoard"),
  };
}

std::vector<Field> TrainSettings::fields() {
  return {
      field(&steps, "steps", "number of updates").in(0, max_count),
      field(&batch, "batch", "sequences per micro-batch").in(1, max_count),
      field(&accumulate, "accumulate", "micro-batches per update").in(1, max_count),
      field(&optimizer, "optimizer", "optimizer"),
      field(&schedule, "schedule", "learning-rate schedule"),
      field(&clip, "clip", "gradient clipping: largest global norm; none: no clipping").above(0),
      field(&qk_clip, "qk_clip",
            "after an update, heads with a larger score than this have W_q and W_k scaled down to it (Kimi K2 2025); none: never")
          .above(0),
      field(&label_smoothing, "label_smoothing", "share of the target's probability that is spread uniformly over the vocabulary")
          .in(0, 0.999),
      field(&evaluate, "evaluate", "when, and on how much validation data"),
      field(&checkpoint, "checkpoint", "when to save"),
      field(&keep, "keep", "weights that a run returns: the last, or those of the best evaluation (best.safetensors)")
          .one_of({"last", "best"}),
      field(&select, "select", "how keep: best selects"),
      field(&stop, "stop", "early stopping"),
      field(&log, "log", "when to record metrics"),
      field(&ema, "ema", "decay of an exponential moving average of the weights, which is also evaluated; none: no average")
          .in(0, 0.9999999),
      field(&recompute, "recompute",
            "recompute each block in the backward pass instead of storing its activations: less memory, more time"),
      field(&from, "continue",
            "a run whose weights, optimizer, data position and random state this one goes on from, with more steps or another schedule"),
      field(&adapters, "adapters", "low-rank adapters of some weights (Hu et al. 2022); the other weights stay, but for a task's head"),
      field(&precision, "precision", "type of the factors of matrix products: bfloat16 (summed in float32), or dtype, as none")
          .one_of({"float32", "float64", "bfloat16"})
          .suggesting(of_fewer_bits("the only type of fewer bits is bfloat16")),
  };
}

std::optional<std::string> TrainSettings::contradiction() {
  if (!keeps_best() && select.metric != SelectSettings().metric) return "select.metric: needs train.keep: best";
  if (qk_clip && adapters.rank) return "qk_clip: cannot be combined with adapters, which keep W_q and W_k";
  for (auto const& [key, metric] : {std::pair("select", select.metric), std::pair("stop", stop.metric)})
    if (MetricKey::of(metric).is_averaged() && !ema) return fmt::format("{}.metric: {} needs train.ema", key, metric);
  return std::nullopt;
}

std::vector<Field> Experiment::fields() {
  return {
      field(&name, "name", "name of the run's folder; may contain ${seed} and other keys"),
      field(&seed, "seed", "random seed").in(0, 9e15),
      field(&dtype, "dtype", "floating-point type")
          .one_of({"float32", "float64"})
          .suggesting(of_fewer_bits("train.precision: bfloat16 rounds the factors of products, and dtype stays float32")),
      field(&data, "data", "the training and validation data").mandatory(),
      field(&model, "model", "the model").mandatory(),
      field(&init, "init", "initial weights"),
      field(&train, "train", "training"),
      field(&probes, "probes", "what is recorded beside the loss (heed list probes)"),
  };
}

std::optional<std::string> Experiment::contradiction() {
  if (probes.batch == "step" && train.recompute)
    return "probes.batch: step cannot be combined with train.recompute, which runs each layer twice";
  if (auto const* const stack = dynamic_cast<StackSettings const*>(model.settings.get()); stack != nullptr && stack->parametrization.base)
    if (auto const why = contradiction_of_mup(init, train.optimizer, train.schedule)) return why;
  if (train.qk_clip)
    if (auto const why = contradiction_of_qk_clip(model)) return why;
  std::string const factors = train.precision.value_or(dtype);
  if (factors == dtype || (factors == "bfloat16" && dtype == "float32")) return std::nullopt;
  return fmt::format("train.precision: {} cannot be combined with dtype {}", factors, dtype);
}

void LoadedExperiment::refuse(std::string const& key, std::string const& why, std::optional<std::size_t> item) const {
  throw ConfigError(location_of(document, item ? fmt::format("{}.{}", key, *item) : key), key + ": " + why);
}

LoadedExperiment load_experiment(fs::path const& file, std::vector<std::string> const& overrides, Folders folders) {
  LoadedExperiment loaded{load(file), {}, std::move(folders)};
  for (std::string const& override : overrides) assign(loaded.document, override);
  loaded.folders.config_folder = fs::absolute(file).parent_path();
  inherit_model(loaded.document, loaded.folders);
  fill(loaded.document, loaded.settings);
  check_folder_name(location_of(loaded.document, "name"), "name", loaded.settings.name);
  return loaded;
}

fs::path find_run(fs::path const& run, Folders const& folders) {
  std::error_code unreadable;
  fs::path const path = fs::exists(run, unreadable) ? run : folders.output / run;
  if (!fs::exists(path, unreadable)) {
    std::vector<std::string> names;
    for (auto const& entry : fs::directory_iterator(folders.output, unreadable)) names.push_back(entry.path().filename().string());
    throw ConfigError(run.string(), "there is no such run" + did_you_mean(run.filename().string(), names));
  }
  if (!fs::is_directory(path, unreadable) && path.filename() != "checkpoint.safetensors" && path.filename() != best_file("").filename())
    throw ConfigError(path.string(), "is neither a run's folder nor its checkpoint.safetensors");
  return path;
}

std::vector<std::string> keys_changed(Yaml const& kept, Experiment& settings) {
  Experiment fresh;
  Yaml const now = tree(settings), usual = tree(fresh);
  auto const has_default = [&](std::string const& key) {
    Yaml const *const value = now.find(key), *const before = usual.find(key);
    return value != nullptr && before != nullptr && emit_line(*value) == emit_line(*before);
  };
  auto differing = differing_keys(as_read_now(kept), now);
  std::erase_if(differing, [&](std::string const& key) { return kept.find(key) == nullptr && has_default(key); });
  std::erase(differing, "train.log.tensorboard");
  return differing;
}

void check_configuration(Checkpoint const& checkpoint, Experiment settings, std::string const& path) {
  auto const written = checkpoint.metadata.find("configuration");
  if (written == checkpoint.metadata.end()) return;  // written by an earlier revision
  settings.probes = {};
  auto differing = keys_changed(parse_yaml(written->second, path + ": its configuration"), settings);
  std::erase(differing, "train.steps");
  if (differing.empty()) return;
  throw FileError(fmt::format("{}: was written with another configuration than the config.yaml beside it; what differs: {}", path,
                              fmt::join(differing, ", ")));
}

std::string TrainedModel::weights_note() const {
  if (weights != "best") return "";
  return fmt::format("{}: weights of step {}, the best by {}", path.string(), step, settings.train.select.metric);
}

TrainedModel open_run(fs::path const& folder, std::string weights, std::optional<DType> dtype) {
  fs::path const directory = fs::is_directory(folder) ? folder : folder.parent_path();
  if (!fs::exists(folder)) throw FileError(fmt::format("{}: there is no such run", folder.string()));
  if (!has_checkpoint(directory)) {
    if (is_huggingface_folder(directory)) return open_foreign_model(directory, dtype);
    refuse_folder_of_runs(directory);
    throw FileError(fmt::format("{}: holds no checkpoint.safetensors; has the run been started?", directory.string()));
  }
  TrainedModel run;
  run.path = folder;
  fill(load_kept(directory), run.settings);
  weights = chosen(weights, folder, directory, run.settings.train);
  bool const averaged = weights == "average", best = weights == "best";
  Checkpoint const checkpoint = best ? load_best(directory) : load_checkpoint(directory, averaged);
  auto const data = checkpoint.metadata.find("data");
  std::string const path = (best ? best_file(directory) : directory / "checkpoint.safetensors").string();
  if (data == checkpoint.metadata.end())
    throw FileError(fmt::format("{}: its metadata do not describe its data: another revision of heed wrote it (train it again)", path));
  check_configuration(checkpoint, run.settings, path);
  run.files_read = files_read_by(checkpoint.metadata);
  run.data = Signature::parse(data->second, path + ": its metadata of the data");
  if (dtype) {
    run.settings.dtype = to_string(*dtype);
    run.settings.train.precision.reset();
  }
  set_products(run.settings.products());
  run.parameters = std::make_unique<Parameters>(static_cast<std::uint64_t>(run.settings.seed), run.settings.precision());
  try {
    run.model = make_model(run.settings.model, *run.parameters, run.data);
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: {}", path, error.what()));
  }
  assign_from(path, checkpoint.parameters, *run.parameters);
  auto const tokenizer = checkpoint.metadata.find("tokenizer");
  if (tokenizer != checkpoint.metadata.end()) run.tokenizer = tokenizer->second;
  if (auto const classes = checkpoint.metadata.find("classes"); classes != checkpoint.metadata.end())
    run.classes = names_in(classes->second, path);
  auto const source = checkpoint.metadata.find("source_tokenizer");
  run.source_tokenizer = source != checkpoint.metadata.end() ? source->second : run.tokenizer;
  run.step = checkpoint.step;
  run.weights = best ? "best" : averaged ? "averaged" : "last";
  if (averaged) take_average(run, checkpoint, directory);
  return run;
}

TrainedModel open_run(ChosenRun const& chosen, std::optional<DType> dtype) {
  return open_run(find_run(chosen.run, chosen.folders), chosen.weights, dtype);
}

std::shared_ptr<Tokenizer const> tokenizer_of(TrainedModel const& run, std::string const& part) try {
  auto result = restore_tokenizer(part == "source" ? run.source_tokenizer : run.tokenizer);
  PartSpec const& given = run.data[part];
  if (result->vocabulary() + std::ssize(given.added) != given.classes)
    throw Error(fmt::format("of {} tokens, but the model has {}", result->vocabulary(), given.classes));
  return result;
} catch (Error const& error) {
  throw FileError(fmt::format("{}: its tokenizer: {}", run.path.string(), error.what()));
}

std::unique_ptr<Dataset> data_of(TrainedModel const& run, Folders const& folders, std::string const& split, bool quiet) {
  std::string const path = run.path.string();
  if (run.foreign)
    throw ConfigError(path, "is not a run of heed, and its data are not known: use heed evaluate with --text FILE or --ids FILE");
  auto const& settings = run.settings;
  DataContext const context{.config_folder = run.folder(),
                            .data_folder = folders.data,
                            .seed = static_cast<std::uint64_t>(settings.seed),
                            .quiet = quiet,
                            .held_out = split,
                            .runs = folders.output,
                            .tokenizer = run.tokenizer};
  std::unique_ptr<Dataset> data;
  try {
    data = viewed(open_dataset(settings.data, context), settings.model, context.seed);
  } catch (ConfigError const&) {
    throw;
  } catch (FileError const& error) {
    throw FileError(fmt::format("{} (the data of {}; --data names the folder that they are in)", error.what(), path));
  } catch (Error const& error) {
    throw ConfigError(split == "test" ? "--split" : path, error.what());
  }
  if (auto const difference = changed(run.files_read, data->facts().files))
    throw FileError(fmt::format("{}: was trained on other data than the present ones: {}", path, *difference));
  bool const same_tokens =
      run.tokenizer.empty() || (data->tokenizer() == run.tokenizer && data->source_tokenizer() == run.source_tokenizer);
  Signature const& given = data->signature();
  bool const same_parts = std::ranges::all_of(run.data.parts(), [&](PartSpec const& part) {
    return given.has(part.name) && given[part.name].classes == part.classes && given[part.name].vocabulary == part.vocabulary &&
           given[part.name].shape == part.shape;
  });
  if (!same_tokens || !same_parts)
    throw FileError(fmt::format("{}: was trained on other data: their vocabulary differs from that of the present data", path));
  return data;
}

std::unique_ptr<Dataset> data_of_file(TrainedModel const& run, fs::path const& file, bool labelled) try {
  if (run.foreign) throw ConfigError(run.path.string(), "is not a run of heed: no data of labelled examples belong to it");
  auto plain = open_examples_of(file, run.settings.data, run.classes, run.tokenizer, labelled, run.path.string());
  return viewed(std::move(plain), run.settings.model, static_cast<std::uint64_t>(run.settings.seed));
} catch (ConfigError const&) {
  throw;
} catch (FileError const&) {
  throw;
} catch (Error const& error) {
  throw ConfigError(run.path.string(), error.what());
}

}  // namespace heed
