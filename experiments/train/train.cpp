#include "experiments/train/train.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/graph.hpp"
#include "experiments/data/view.hpp"
#include "experiments/program/failure.hpp"
#include "experiments/train/ranks.hpp"

namespace heed {

namespace {

Declared<MetricInfo> const training_loss_metric{
    {"loss", "nat", Better::lower, "mean cross entropy of the training targets, before the update", {.min = 0}}};
Declared<MetricInfo> const grad_norm_metric{{"grad_norm", "", std::nullopt, "global norm of the gradient, before clipping", {.min = 0}}};
Declared<MetricInfo> const lr_metric{{"lr", "", std::nullopt, "learning rate"}};
Declared<MetricInfo> const excess_metric{
    {"validation.excess", "nat", Better::lower, "validation.loss minus the entropy of the data, where that is known"}};

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
      parameters_(static_cast<std::uint64_t>(settings_.seed), settings_.precision(), settings_.init),
      noise_(static_cast<std::uint64_t>(settings_.seed), "dropout") {
  auto context = data_context(experiment.folders);
  context.seed = static_cast<std::uint64_t>(settings_.seed);
  context.quiet = quiet;
  judging(experiment.document, "data", [&] { data_ = viewed(open_dataset(settings_.data, context), settings_.model, context.seed); });
  set_products(settings_.products());
  MemoryLimit const limit = within_available_memory();
  judging(experiment.document, "model", [&] {
    check_parameters();
    model_ = make_model(settings_.model, parameters_, data_->signature());
  });
  check_data();
  metrics_ = metrics_of(experiment, *data_, *model_);
  contexts_.emplace(experiment, *data_, *model_);
  check_probes();
  zero_shot_.emplace(experiment, context, *data_, *model_);
  files_read_ = data_->facts().files;
  files_read_.merge(zero_shot_->files());
  if (!settings_.init.from.empty()) {
    judging(experiment.document, "init", [&] { start(); });
    if (!quiet && !start_remark_.empty()) fmt::print(stderr, "init.from: {}: {}\n", files_read_["init.from"].file, start_remark_);
  }
  judging(experiment.document, "train", [&] {
    if (auto const& adapters = settings_.train.adapters; adapters.rank)
      adapters_.emplace(parameters_, adapters, static_cast<std::uint64_t>(settings_.seed));
    make_optimizer();
    if (settings_.train.qk_clip) qk_clip_.emplace(parameters_, *settings_.train.qk_clip);
    if (settings_.train.ema) average_.emplace(parameters_, *settings_.train.ema);
  });
  if (EstimatorSettings const* const chooses = model_->estimator()) {
    estimator_.emplace(*chooses);
    if (chooses->sums_over_choices() && settings_.train.recompute)
      experiment.refuse("train.recompute", fmt::format("the estimator {} needs the whole pass", chooses->estimator));
    check_estimator();
  }
  if (!settings_.train.from.empty()) judging(experiment.document, "train", [&] { go_on(); });
  judging(experiment.document, "train.schedule", [&] { learning_rate_at(step_, settings_.train.steps); });
  try_step();
  check_selection();
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
  if (qk_clip_) observer = qk_clip_->watch(observer);
  StepResults const results = accumulate_gradients(shared, observer);
  if (adapters_) adapters_->take_gradients();
  double const loss = std::accumulate(results.losses.begin(), results.losses.end(), 0.0), norm = gradient_norm(trained());
  if (!std::isfinite(loss)) diagnose("the loss is " + name_of_non_finite(loss));
  if (!std::isfinite(norm)) diagnose("the gradient's norm is " + name_of_non_finite(norm));
  double const lr = learning_rate_at(step_, settings_.train.steps);
  optimizer_->step(lr, settings_.train.clip ? clip_factor(norm, *settings_.train.clip) : 1);
  if (qk_clip_) qk_clip_->clip(largest_of_all(qk_clip_->largest()));
  if (adapters_) adapters_->merge();
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

Training Trainer::training(Index steps) const {
  Training training{.steps = steps, .lr = optimizer_settings(settings_.train.optimizer).lr, .width = model_->width()};
  if (continued_) training.begin = continued_->checkpoint.step, training.last = continued_->rate;
  return training;
}

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

Index Trainer::validation_batches() const {
  return settings_.train.evaluate.count(data_->validation_batches(validation_rows(), model_->context()));
}

std::vector<std::pair<std::string, double>> Trainer::reference_losses() const {
  return data_->reference_losses(validation_batches() * validation_rows(), model_->context());
}

void Trainer::evaluate(Row& row, Index max_batches) {
  Index const count = std::min(max_batches, validation_batches());
  if (count == 0) return;
  validate(row, "validation", count);
  if (auto const& optimum = data_->facts().optimum)
    row.set("validation.excess", *row.find("validation.loss") - optimum(count * validation_rows(), model_->context()));
  if (!average_) return;
  WithAverage const averaged(*average_);
  validate(row, "validation.ema", count);
}

}  // namespace heed
