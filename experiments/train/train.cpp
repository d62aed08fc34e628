#include "experiments/train/train.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/graph.hpp"
#include "experiments/data/view.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/train/ranks.hpp"
#include "experiments/train/train_checks.hpp"
#include "nn/files/json.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/models/blocks.hpp"

namespace heed {

namespace {

Declared<MetricInfo> const training_loss_metric{
    {"loss", "nat", Better::lower, "mean cross entropy of the training targets, before the update", {.min = 0}}};
Declared<MetricInfo> const grad_norm_metric{{"grad_norm", "", std::nullopt, "global norm of the gradient, before clipping", {.min = 0}}};
Declared<MetricInfo> const lr_metric{{"lr", "", std::nullopt, "learning rate"}};
Declared<MetricInfo> const excess_metric{
    {"validation.excess", "nat", Better::lower, "validation.loss minus the entropy of the data, where that is known"}};

DataContext data_context(LoadedExperiment const& experiment, bool quiet) {
  Folders const& folders = experiment.folders;
  return {.config_folder = folders.config_folder,
          .data_folder = folders.data,
          .seed = static_cast<std::uint64_t>(experiment.settings.seed),
          .quiet = quiet,
          .runs = folders.runs.empty() ? folders.output : folders.runs};
}

/// The data in the form that the model's kind reads.
std::unique_ptr<Dataset> open_for(Experiment const& settings, DataContext const& context) {
  return viewed(open_dataset(settings.data, context), settings.model, context.seed);
}

/// The metrics of an evaluation: those that are always measured, as far as they apply, and those in train.evaluate.metrics. Throws
/// ConfigError if one of the latter does not apply.
std::vector<MetricKind const*> metrics_of(LoadedExperiment const& experiment, Dataset const& data, Model const& model) {
  auto const& asked = experiment.settings.train.evaluate.metrics;
  std::vector<MetricKind const*> result;
  for (MetricKind const& kind : Registry<MetricKind>::all()) {
    auto const named = std::ranges::find(asked, kind.info.name);
    if (!kind.always && named == asked.end()) continue;
    auto const unavailable = kind.unavailable ? kind.unavailable(data, model) : std::nullopt;
    if (!unavailable) result.push_back(&kind);
    if (!unavailable || named == asked.end()) continue;
    experiment.refuse("train.evaluate.metrics", fmt::format("there is no {} here: {}", kind.info.name, *unavailable),
                      static_cast<std::size_t>(named - asked.begin()));
  }
  return result;
}

/// Number of tokens of "inputs", without padding.
Index tokens_of(Batch const& batch) {
  Tensor const lengths = batch.get("lengths");
  if (!lengths.defined()) return batch["inputs"].elements();
  auto const of_rows = lengths.data<std::int64_t>();
  return std::accumulate(of_rows.begin(), of_rows.end(), Index{0});
}

}  // namespace

Trainer::Trainer(LoadedExperiment const& experiment, bool quiet)
    : experiment_(experiment),
      settings_(experiment.settings),
      data_(judging(experiment.document, "data", [&] { return open_for(settings_, data_context(experiment, quiet)); })),
      parameters_(static_cast<std::uint64_t>(settings_.seed), settings_.precision(), settings_.init),
      noise_(static_cast<std::uint64_t>(settings_.seed), "dropout") {
  set_products(settings_.products());
  MemoryLimit const limit = within_available_memory();
  judging(experiment.document, "model", [&] {
    check_parameters(settings_, data_->signature());
    model_ = make_model(settings_.model, parameters_, data_->signature());
  });
  check_data(experiment, *data_, *model_);
  metrics_ = metrics_of(experiment, *data_, *model_);
  contexts_.emplace(experiment, *data_, *model_);
  check_probes(experiment, *model_);
  zero_shot_.emplace(experiment, data_context(experiment, quiet), *data_, *model_);
  files_read_ = data_->facts().files;
  files_read_.merge(zero_shot_->files());
  if (!settings_.init.from.empty()) {
    judging(experiment.document, "init", [&] { start(); });
    if (!quiet && !start_remark_.empty()) fmt::print(stderr, "init.from: {}: {}\n", files_read_["init.from"].file, start_remark_);
  }
  judging(experiment.document, "train", [&] {
    optimizer_ = optimizer_for(experiment, parameters_);
    if (settings_.train.ema) average_.emplace(parameters_, *settings_.train.ema);
  });
  if (EstimatorSettings const* const chooses = model_->estimator()) {
    estimator_.emplace(*chooses);
    if (chooses->sums_over_choices() && settings_.train.recompute)
      experiment.refuse("train.recompute", fmt::format("the estimator {} needs the whole pass", chooses->estimator));
    check_estimator(experiment, *estimator_, *data_, *model_);
  }
  try_step();
  check_selection();
}

/// Takes the weights of init.from.
void Trainer::start() {
  auto const& meant = settings_.init.changed;
  ModelSection section;
  section.model = settings_.model;
  for (std::size_t i = 0; i < meant.size(); ++i)
    if (tree(section).find(meant[i]) == nullptr) experiment_.refuse("init.changed", fmt::format("there is no key {} here", meant[i]), i);
  Start const start = [&] {
    try {
      return start_from(parameters_, settings_.init, *data_, locate(settings_.init.from, data_context(experiment_, true)));
    } catch (MisfitWeights const& error) {
      auto const* const stack = dynamic_cast<StackSettings const*>(settings_.model.settings.get());
      if (stack == nullptr || stack->pattern.empty()) throw;
      experiment_.refuse("model.layer_types", fmt::format("the weights are of another pattern of layers: {}", error.what()));
    }
  }();
  files_read_["init.from"] = start.file;
  start_remark_ = start.remark;
  auto const add = [&](std::string const& sentence) { start_remark_ += (start_remark_.empty() ? "" : "; ") + sentence; };
  if (start.configuration.kind == Yaml::NodeKind::null) return add("the file has no configuration to compare the model with");
  unexpected_ = changed_function(start.configuration, settings_, *model_, parameters_, *data_);
  std::vector<std::string> words;
  for (auto const& change : unexpected_) words.push_back(change.words);
  if (!words.empty()) add(fmt::format("the model is another function of these weights: {}", fmt::join(words, "; ")));
  std::erase_if(unexpected_, [&](auto const& change) {
    return std::ranges::any_of(meant, [&](auto const& key) { return is_within(change.key, key); });
  });
}

/// Computes the first step's gradients, so that what the engine refuses, and a step that does not fit into memory, are refused before
/// training.
void Trainer::try_step() {
  if (settings_.train.steps == 0) return;
  judging(experiment_.document, "model", [&] {
    try {
      accumulate_gradients(false);
    } catch (OutOfMemory const&) {
      throw;
    } catch (Error const& error) {
      throw Error(fmt::format("model: a training step is refused: {}", error.what()));
    }
  });
  parameters_.clear_gradients();
}

std::string Trainer::tokens_in_words() const {
  PartSpec const given = data_->signature()["inputs"];
  Index const longest = given.longest > 0 ? std::min(given.longest, model_->context()) : model_->context();
  Index const max_tokens = given.max_tokens > 0 ? given.max_tokens : settings_.train.batch * given.sequences * longest;
  return fmt::format("{}{} tokens a step", given.longest > 0 ? "at most " : "", settings_.train.accumulate * max_tokens);
}

Pass Trainer::pass_for(Index micro_batch, Observer const* observer) const {
  Pass pass;
  pass.training.noise = noise_.child(static_cast<std::uint64_t>(micro_batch));
  pass.training.recompute = settings_.train.recompute;
  pass.training.step = step_;
  pass.watching.observer = observer;
  return pass;
}

/// Adds the gradients of the step's mean loss to the parameters', micro-batch by micro-batch. `shared`: among all ranks.
StepResults Trainer::accumulate_gradients(bool shared, Observer const* observer) {
  Index const count = settings_.train.accumulate;
  MicroBatches const part = shared ? part_of(count, ranks().rank(), ranks().size()) : MicroBatches{0, count};
  std::vector<Batch> batches;
  Counts counts;
  for (Index k = part.first; k < part.end; ++k) {
    batches.push_back(data_->training(step_ * count + k, settings_.train.batch, model_->context()));
    counts += model_->counts(batches.back());
  }
  if (shared) counts = counts_of_all(counts);

  GradientSum sum(parameters_, count, part);
  StepResults results;
  if (estimator_) estimator_->begin_step();
  for (Index k = part.first; k < part.end; ++k) {
    Batch const& batch = at(batches, k - part.first);
    Pass const pass = pass_for(step_ * count + k, observer);
    if (estimator_) {
      results.losses.push_back(estimator_->accumulate(*model_, batch, pass, settings_.train.label_smoothing, counts.targets.front()));
    } else {
      Tensor const loss = model_->loss(batch, pass, settings_.train.label_smoothing, counts);
      loss.backward();
      results.losses.push_back(loss.item());
    }
    sum.end_micro_batch();
    results.tokens += static_cast<double>(tokens_of(batch));
  }
  if (shared) sum_over_ranks(sum, results);
  return results;
}

void Trainer::train_step(Row& row, Observer const* observer) {
  // Ranks share the micro-batches, unless each must see all of them: for an observer, or an estimator, which learns from all losses.
  bool const shared = ranks().several() && observer == nullptr && !estimator_;
  parameters_.clear_gradients();
  StepResults const results = accumulate_gradients(shared, observer);
  double const loss = std::accumulate(results.losses.begin(), results.losses.end(), 0.0), norm = gradient_norm(parameters_);
  if (!std::isfinite(loss)) diagnose("the loss is " + name_of_non_finite(loss));
  if (!std::isfinite(norm)) diagnose("the gradient's norm is " + name_of_non_finite(norm));
  double const lr = learning_rate_at(step_, settings_.train.steps);
  optimizer_->step(lr, settings_.train.clip ? clip_factor(norm, *settings_.train.clip) : 1);
  if (average_) average_->update();
  if (estimator_) estimator_->end_step();
  ++step_;
  tokens_read_ += static_cast<Index>(results.tokens);
  row.set("loss", loss);
  row.set("grad_norm", norm);
  row.set("lr", lr);
}

Index Trainer::critical_path() {
  Index const number = step_ * settings_.train.accumulate;
  Batch const batch = data_->training(number, settings_.train.batch, model_->context());
  if (estimator_) estimator_->begin_step();
  return heed::critical_path(model_->loss(batch, pass_for(number, nullptr), settings_.train.label_smoothing, model_->counts(batch)));
}

Training Trainer::training(Index steps) const { return {steps, optimizer_settings(settings_.train.optimizer).lr, model_->width()}; }

double Trainer::learning_rate_at(Index step, Index steps) const { return learning_rate(settings_.train.schedule, step, training(steps)); }

std::optional<std::string> Trainer::remark() const {
  auto remarks = data_->facts().remarks;
  std::string const key = "train.schedule.warmup";
  if (auto const warmup = unfinished_warmup(settings_.train.schedule, training(settings_.train.steps)))
    remarks.push_back(fmt::format("{}: {}: {}", to_string(location_of(experiment_.document, key)), key, *warmup));
  return remarks.empty() ? std::nullopt : std::optional(fmt::format("{}", fmt::join(remarks, "\n")));
}

void Trainer::diagnose(std::string const& what) {
  // The step is a pure function of its number, so it can be repeated, now with every operation checked.
  std::string operation = "no single operation shows it: numbers too large for their type";
  try {
    Anomaly const anomaly;
    parameters_.clear_gradients();
    if (auto const damage = find_non_finite(parameters_.all()))
      throw NonFinite(*damage + (step_ > 0 ? ": the previous update was too large" : " from the start"));
    accumulate_gradients(false);
  } catch (NonFinite const& found) {
    operation = found.what();
  }
  throw TrainingError(fmt::format("step {}: {} ({}); a smaller learning rate, clipping or warm-up may help", step_, what, operation));
}

void Trainer::validate(Row& row, std::string const& prefix, Index most) const {
  std::vector<std::unique_ptr<Metric>> made;
  EvaluatedBatch::Metrics metrics;
  for (MetricKind const* const kind : metrics_) metrics.push_back(made.emplace_back(kind->make(*data_)).get());
  contexts_->evaluate(metrics, model_->context(), most);
  for (Metric const* const metric : metrics) metric->write(row, prefix);
  contexts_->measure(row, prefix);
  zero_shot_->measure(row, prefix);
}

void Trainer::evaluate(Row& row, Index max_batches) {
  Index const rows = settings_.train.evaluate.batch.value_or(settings_.train.batch);
  Index const count = std::min(max_batches, settings_.train.evaluate.count(data_->validation_batches(rows, model_->context())));
  if (count == 0) return;
  validate(row, "validation", count);
  if (auto const& optimum = data_->facts().optimum)
    row.set("validation.excess", *row.find("validation.loss") - optimum(count * rows, model_->context()));
  if (!average_) return;
  WithAverage const averaged(*average_);
  validate(row, "validation.ema", count);
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
  made.state_metadata = {{"environment", numeric_environment()}};
  return made;
}

Checkpoint Trainer::best(Selection::Best const& chosen) {
  Checkpoint made;
  if (settings_.train.select.averaged()) {
    WithAverage const averaged(*average_);
    made = weights();
    for (auto& [name, parameter] : made.parameters) parameter = parameter.clone();
  } else {
    made = weights();
  }
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
  assign_from(path, checkpoint.parameters, parameters_);
  try {
    optimizer_->load_state(checkpoint.state);
    if (average_) average_->load_state(checkpoint.state);
    if (estimator_) estimator_->load_state(checkpoint.state);
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: {}", (folder / fmt::format("state-{}.safetensors", checkpoint.step)).string(), error.what()));
  }
  step_ = checkpoint.step;
}

}  // namespace heed
