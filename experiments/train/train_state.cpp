// What a training begins with, and what it leaves: initial weights, checkpoints, another run's state.

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "experiments/folder/result_file.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/train/train.hpp"
#include "nn/files/json.hpp"
#include "nn/files/number.hpp"
#include "nn/files/sha256.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

namespace {

/// On which the updates made, the data's position or the random state depend.
constexpr std::array kept_keys{
    "seed", "dtype", "data", "model", "init", "train.batch", "train.accumulate", "train.optimizer.kind", "train.ema", "train.adapters"};

/// The last checkpoint of the run in a folder. Throws ConfigError for settings that must be that run's (kept_keys) and are not, and unless
/// train.steps exceeds its updates; FileError for a folder without a checkpoint, or with a damaged one.
ContinuedRun continued_run(LoadedExperiment const& experiment, fs::path const& folder) {
  if (!fs::is_directory(folder) || !has_checkpoint(folder))
    experiment.refuse("train.continue", fmt::format("{} is not the folder of a run that has a checkpoint", folder.string()));
  fs::path const file = folder / "checkpoint.safetensors";
  ContinuedRun from{folder, {file.string(), sha256_of_file(file)}, load_checkpoint(folder), 0};
  auto const found = [&](auto const& metadata, char const* key) -> std::string const& {
    auto const entry = metadata.find(key);
    if (entry == metadata.end())
      throw FileError(fmt::format("{}: does not say its {}: an earlier revision of heed wrote it", file.string(), key));
    return entry->second;
  };
  from.rate = parsed_number<double>(found(from.checkpoint.state_metadata, "rate")).value_or(0);
  Experiment settings = experiment.settings;
  auto const differing = keys_changed(parse_yaml(found(from.checkpoint.metadata, "configuration"), file.string()), settings);
  for (auto const& key : differing)
    if (std::ranges::any_of(kept_keys, [&](char const* kept) { return is_within(key, kept); }))
      experiment.refuse(
          key, fmt::format("is another in {}, which this run continues (init.from begins anew with its weights)", folder.string()));
  if (from.checkpoint.step >= settings.train.steps)
    experiment.refuse("train.steps", fmt::format("{} has made {} updates already", folder.string(), from.checkpoint.step));
  return from;
}

}  // namespace

/// Takes the weights of init.from.
void Trainer::start() {
  auto const& meant = settings_.init.changed;
  ModelSection section;
  section.model = settings_.model;
  for (std::size_t i = 0; i < meant.size(); ++i)
    if (tree(section).find(meant[i]) == nullptr) experiment_.refuse("init.changed", fmt::format("there is no key {} here", meant[i]), i);
  auto const path = locate(settings_.init.from, data_context(experiment_.folders));
  Start const start = [&] {
    try {
      return start_from(parameters_, settings_.init, *data_, path);
    } catch (MisfitWeights const& error) {
      auto const* const stack = dynamic_cast<StackSettings const*>(settings_.model.settings.get());
      if (stack == nullptr || stack->pattern.empty()) throw;
      experiment_.refuse("model.layer_types", fmt::format("the weights are of another pattern of layers: {}", error.what()));
    }
  }();
  files_read_["init.from"] = start.file;
  start_remark_ = start.remark;
  auto const add = [&](std::string const& sentence) { start_remark_ += (start_remark_.empty() ? "" : "; ") + sentence; };
  Yaml const before = model_of_weights(path);
  if (before.kind == Yaml::NodeKind::null) return add("the file has no configuration to compare the model with");
  std::vector<std::string> others, of_function;
  for (auto& change : changed_keys(before, settings_, *model_, parameters_, *data_)) {
    (change.function ? of_function : others).push_back(change.words);
    if (change.function) unexpected_.push_back(std::move(change));
  }
  if (!of_function.empty()) add(fmt::format("the model is another function of these weights: {}", fmt::join(of_function, "; ")));
  if (!others.empty()) add(fmt::format("changed: {}", fmt::join(others, "; ")));
  std::erase_if(unexpected_, [&](auto const& change) {
    return std::ranges::any_of(meant, [&](auto const& key) { return is_within(change.key, key); });
  });
}

/// Takes the state of train.continue.
void Trainer::go_on() {
  auto const folder = locate(settings_.train.from, data_context(experiment_.folders));
  continued_ = continued_run(experiment_, folder);
  Checkpoint& checkpoint = continued_->checkpoint;
  if (auto const difference = changed(files_read_by(checkpoint.metadata), files_read_))
    experiment_.refuse("train.continue", fmt::format("a file that {} has read has changed: {}", folder.string(), *difference));
  load_state(checkpoint, folder);
  files_read_["train.continue"] = continued_->file;
  checkpoint.parameters.clear(), checkpoint.state.clear();
}

/// The current parameters, with the metadata that a reader of the model needs. Throws TrainingError if a parameter is not finite.
Checkpoint Trainer::weights() const {
  if (auto const damage = find_non_finite(parameters_.all())) {
    throw TrainingError(
        fmt::format("step {}: after its update {}; a smaller learning rate, clipping or warm-up may help", step_ - 1, *damage));
  }
  Checkpoint made;
  made.step = step_;
  made.parameters = parameters_.all();
  Experiment settings = settings_;
  settings.probes = {};  // probes change no weights
  made.metadata = {{"data", data_->signature().text()}, {"configuration", emit(settings)}, {"read", json_text(to_json(files_read_))}};
  if (std::string const tokenizer = data_->tokenizer(); !tokenizer.empty()) made.metadata["tokenizer"] = tokenizer;
  if (std::string const source = data_->source_tokenizer(); source != data_->tokenizer()) made.metadata["source_tokenizer"] = source;
  if (auto const& classes = data_->facts().classes; !classes.empty()) made.metadata["classes"] = json_text(nlohmann::json(classes));
  return made;
}

Checkpoint Trainer::checkpoint() const {
  Checkpoint made = weights();
  made.state = optimizer_->state();
  if (average_) std::ranges::copy(average_->state(), std::back_inserter(made.state));
  if (estimator_) std::ranges::copy(estimator_->state(), std::back_inserter(made.state));
  if (adapters_) std::ranges::copy(adapters_->state(), std::back_inserter(made.state));
  made.state_metadata = {{"environment", numeric_environment()},
                         {"rate", fmt::format("{}", learning_rate_at(std::max<Index>(step_ - 1, 0), settings_.train.steps))}};
  return made;
}

Checkpoint Trainer::best(Selection::Best const& chosen) {
  std::optional<WithAverage> averaged;
  if (settings_.train.select.averaged()) averaged.emplace(*average_);
  Checkpoint made = weights();
  if (averaged)
    for (auto& [name, parameter] : made.parameters) parameter = parameter.clone();
  made.metadata["selected_by"] = settings_.train.select.metric;
  made.metadata["selected_at"] = fmt::format("{}", chosen.value);
  return made;
}

void Trainer::take_best(std::filesystem::path const& folder) {
  assign_from(best_file(folder).string(), load_best(folder).parameters, parameters_);
}

void Trainer::resume(Checkpoint const& checkpoint, std::filesystem::path const& folder) {
  auto const environment = checkpoint.state_metadata.find("environment");
  std::string const before = environment == checkpoint.state_metadata.end() ? "an unknown environment" : environment->second;
  if (before != numeric_environment()) {
    throw FolderError(fmt::format("{}: the run was begun with {}; here it is {}: results would not be bit-identical (--fresh begins anew)",
                                  folder.string(), before, numeric_environment()));
  }
  if (checkpoint.step > settings_.train.steps) {
    throw FolderError(
        fmt::format("{}: its checkpoint is of step {}, beyond train.steps: {}", folder.string(), checkpoint.step, settings_.train.steps));
  }
  std::string const path = (folder / "checkpoint.safetensors").string();
  check_configuration(checkpoint, settings_, path);
  if (auto const difference = changed(files_read_by(checkpoint.metadata), files_read_))
    throw FolderError(fmt::format("{}: a file with which the run was begun has changed: {} (put the file back, or --fresh begins anew)",
                                  folder.string(), *difference));
  load_state(checkpoint, folder);
}

/// Parameters, and all that the next update depends on.
void Trainer::load_state(Checkpoint const& checkpoint, std::filesystem::path const& folder) {
  assign_from((folder / "checkpoint.safetensors").string(), checkpoint.parameters, parameters_);
  try {
    if (adapters_) adapters_->load_state(checkpoint.state);
    optimizer_->load_state(checkpoint.state);
    if (average_) average_->load_state(checkpoint.state);
    if (estimator_) estimator_->load_state(checkpoint.state);
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: {}", (folder / fmt::format("state-{}.safetensors", checkpoint.step)).string(), error.what()));
  }
  step_ = checkpoint.step;
}

}  // namespace heed
