#include "experiments/train/train_checks.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/nearest.hpp"
#include "experiments/metric/key.hpp"
#include "experiments/metric/probe/prober.hpp"
#include "experiments/program/system.hpp"
#include "experiments/train/train.hpp"
#include "nn/files/number.hpp"

namespace heed {

MemoryLimit within_available_memory() { return MemoryLimit(memory_use().live + static_cast<Index>(std::min(available_memory(), 1e18))); }

ConfigError does_not_fit(Document const& document, OutOfMemory const& error) {
  std::string const key = document.root.find("data.tokens") != nullptr ? "data.tokens" : "train.batch";
  auto const [needed, available] = told_apart(error.needed / 1e9, error.available / 1e9);
  return ConfigError(location_of(document, key),
                     fmt::format("{}: a training step needs at least {} GB of memory, and {} GB are available (a smaller {} with "
                                 "train.accumulate, a smaller model.context or model.width, or train.recompute: true needs less)",
                                 key, needed, available, key));
}

void check_parameters(Experiment const& settings, Signature const& data) {
  Parameters counted = Parameters::counted(settings.precision());
  auto const model = make_model(settings.model, counted, data);
  double const bytes = static_cast<double>(counted.elements()) * static_cast<double>(bytes_of(settings.precision()));
  double const available = available_memory();
  if (bytes <= available) return;
  auto const [needed, there] = told_apart(bytes / 1e9, available / 1e9);
  throw Error(fmt::format("model: its parameters need {} GB of memory, and {} GB are available", needed, there));
}

void check_data(LoadedExperiment const& experiment, Dataset const& data, Model const& model) {
  Index const context = model.context();
  TrainSettings const& train = experiment.settings.train;
  double const rows = static_cast<double>(train.steps) * static_cast<double>(train.accumulate) * static_cast<double>(train.batch);
  if (rows > 9e15)
    throw ConfigError(location_of(experiment.document, "train"), fmt::format("train: {:.0g} sequences are too many to be numbered", rows));
  Experiment settings = experiment.settings;
  Yaml const all = tree(settings);
  for (std::string const name : {"pairs", "keys"}) {  // single_attention's, "as data.pairs": a batch need not show that it lacks a key
    Yaml const *const own = all.find("model." + name), *const wanted = all.find("data." + name);
    if (own != nullptr && wanted != nullptr && own->text != wanted->text)
      throw ConfigError(location_of(experiment.document, "model." + name),
                        fmt::format("model.{}: {}, but data.{} is {}: the model reads as many", name, own->text, name, wanted->text));
  }
  judging(experiment.document, "data", [&] {
    if (train.steps > 0) model.check(data.training(0, train.batch, context));
    if (train.steps > 0) data.training(train.steps * train.accumulate - 1, train.batch, context);
    Index const held_out = train.evaluate.batch.value_or(train.batch);
    if (data.validation_batches(held_out, context) > 0) data.validation(0, held_out, context);
  });
}

void check_probes(LoadedExperiment const& experiment, Model const& model) {
  for (Probe const& probe : Registry<Probe>::all()) {
    auto const& asked = asked_for(experiment.settings.probes, probe.group);
    auto const named = std::ranges::find(asked, probe.name);
    auto const unavailable = named != asked.end() && probe.unavailable ? probe.unavailable(model) : std::nullopt;
    if (!unavailable) continue;
    std::string const key = "probes." + probe.group;
    throw ConfigError(location_in_list(experiment.document, key, static_cast<std::size_t>(named - asked.begin())),
                      fmt::format("{}: there is no {} here: {}", key, probe.name, *unavailable));
  }
}

void check_estimator(LoadedExperiment const& experiment, Estimator const& estimator, Dataset const& data, Model const& model) {
  if (experiment.settings.train.steps == 0) return;
  std::string const of_cross = "model.cross_attention";
  auto const owner = experiment.document.root.find(of_cross + ".estimator") != nullptr ? of_cross : "model.attention";
  Batch const row = data.training(0, 1, model.context()).first(1);
  judging(experiment.document, owner, [&] {
    try {
      estimator.check(model, row);
    } catch (Error const& error) {
      throw Error(fmt::format("{}.{}", owner, error.what()));  // the message begins with "estimator: "
    }
  });
}

void check_ranks(LoadedExperiment const& experiment, Index size) {
  Index const count = experiment.settings.train.accumulate;
  if (count % size == 0) return;
  std::vector<Index> divisors;
  for (Index divisor = 1; divisor <= std::min(count, Index{4096}); ++divisor)
    if (count % divisor == 0) divisors.push_back(divisor);
  std::string const key = "train.accumulate";
  throw ConfigError(location_of(experiment.document, key),
                    fmt::format("{}: {} processes cannot share {} micro-batches evenly: start one of {} (mpirun -n), or set another {}",
                                key, size, count, fmt::join(divisors, ", "), key));
}

/// Throws ConfigError now, rather than after the first evaluation, if an evaluation does not give the metric of train.select or train.stop.
void Trainer::check_selection() {
  TrainSettings const& train = settings_.train;
  if (!train.keeps_best() && !train.stop.patience) return;
  auto const require = [&](std::string const& key, std::string const& metric) {
    std::vector<std::string> names;
    if (evaluates(metric, names)) return;
    auto const advice = names.empty() ? ": the data hold nothing out" : did_you_mean(metric, names);
    throw ConfigError(location_of(experiment_.document, key), fmt::format("{}: an evaluation here gives no {}{}", key, metric, advice));
  };
  if (train.keeps_best()) require("train.select.metric", train.select.metric);
  if (train.stop.patience) require("train.stop.metric", train.stop.metric);
}

/// Whether an evaluation gives a metric. `names`: what it gives.
bool Trainer::evaluates(std::string const& metric, std::vector<std::string>& names) {
  for (Index const max_batches : {Index{1}, std::numeric_limits<Index>::max()}) {  // a group may be in a later batch
    Row row;
    measure_held_out(row, max_batches);
    names.clear();
    for (auto const& [name, value] : row.values) names.push_back(name);
    if (row.find(metric) != nullptr) return true;
  }
  return false;
}

void Trainer::require_metric(Location const& location, std::string const& metric) {
  std::vector<std::string> names{"loss", "grad_norm", "lr", "time.seconds", "time.tokens_per_second", "memory.peak"};
  auto const key = MetricKey::of(metric);
  if (key.is_held_out()) {
    if (evaluates(metric, names)) return;
  } else if (key.is_probe()) {
    Row row;
    Prober(settings_.probes, settings_.train.batch, settings_.train.label_smoothing, *model_, parameters_, *data_,
           settings_.train.recompute)
        .observe(row);
    parameters_.clear_gradients();
    for (auto const& [name, value] : row.values) names.push_back(name);
  }
  if (std::ranges::find(names, metric) != names.end()) return;
  throw ConfigError(location, fmt::format("metric: this run records no {}{} (train.evaluate.metrics, train.ema and probes record more)",
                                          metric, did_you_mean(metric, names)));
}

}  // namespace heed
