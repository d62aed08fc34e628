// Checks before the first step, and before any arm of an ablation is trained: they throw ConfigError at the location of the key, FileError
// for data.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <regex>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "autograd/blas/products.hpp"
#include "autograd/processor/processor.hpp"
#include "experiments/config/nearest.hpp"
#include "experiments/metric/info.hpp"
#include "experiments/metric/probe/prober.hpp"
#include "experiments/program/system.hpp"
#include "experiments/train/ranks.hpp"
#include "experiments/train/session.hpp"
#include "experiments/train/train.hpp"
#include "nn/files/json.hpp"
#include "nn/files/number.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

using Json = nlohmann::ordered_json;

namespace {

/// A name with a * for each of its numbers: blocks.*.mlp.up.weight.
std::string of_any_layer(std::string const& name) {
  static std::regex const number(R"((^|\.)\d+(?=\.|$))");
  return std::regex_replace(name, number, "$1*");
}

/// Patterns that match something: names, and all their beginnings with ".*", with the numbers in them and without.
std::vector<std::string> patterns_of(Parameters const& parameters) {
  std::set<std::string> all;
  for (auto const& [name, parameter] : parameters.all()) {
    for (auto const& each : {name, of_any_layer(name)}) {
      all.insert(each);
      for (auto dot = each.rfind('.'); dot != each.npos && dot > 0; dot = each.rfind('.', dot - 1)) all.insert(each.substr(0, dot) + ".*");
    }
  }
  return {all.begin(), all.end()};
}

std::string advice(std::string const& pattern, Parameters const& parameters) {
  auto nearest = did_you_mean(pattern, patterns_of(parameters));
  if (!nearest.empty()) return nearest;
  return fmt::format("; there are {}", joined_messages(mapped(parameters.all(), [](auto const& each) { return each.first; })));
}

/// As many digits of a hash as a message shows.
std::string beginning(std::string const& hash) { return hash.substr(0, 16); }

/// Texts by name.
Json facts_of(Trainer const& trainer, Experiment& settings, fs::path const& folder, bool fresh) {
  Json facts;
  for (auto const& [key, value] : flatten(tree(settings))) facts[key] = value;
  for (auto const& [role, read] : trainer.files_read())
    facts[fmt::format("content of {} ({})", role, fs::path(read.file).filename().string())] = beginning(read.sha256);
  bool const goes_on = !fresh && has_checkpoint(folder);
  facts["folder"] = fs::absolute(folder).lexically_normal().string();
  facts["checkpoint"] = goes_on ? beginning(sha256_of_file(folder / "checkpoint.safetensors")) : "none";
  facts["finished"] = goes_on && is_finished(folder, settings) ? "yes" : "no";
  facts["program"] = beginning(sha256_of_file(program_file()));
  facts["processor"] = processor_name();
  facts["matrix products"] = matrix_library();
  Sha256 weights;
  for (auto const& [name, value] : trainer.parameters().all()) weights.update(bytes_in(value));
  facts["initial weights"] = beginning(weights.hex());
  return facts;
}

/// What differs between ranks: "train.steps: 40 (rank 0, 2), 50 (rank 1)". `all`: facts by rank.
std::vector<std::string> differences(std::vector<Json> const& all) {
  Json names;
  for (Json const& facts : all) names.update(facts);
  std::vector<std::string> found;
  for (auto const& [name, any] : names.items()) {
    Json by_value;  // the ranks of each
    for (std::size_t rank = 0; rank < all.size(); ++rank) by_value[all[rank].value(name, "not there")].push_back(rank);
    if (by_value.size() == 1) continue;
    std::vector<std::string> texts;
    for (auto const& [value, of] : by_value.items())
      texts.push_back(fmt::format("{} (rank {})", value, fmt::join(of.get<std::vector<std::size_t>>(), ", ")));
    found.push_back(fmt::format("{}: {}", name, fmt::join(texts, ", ")));
  }
  return found;
}

/// Refuses a number of processes by which train.accumulate cannot be divided.
void check_ranks(LoadedExperiment const& experiment, Index size) {
  Index const count = experiment.settings.train.accumulate;
  if (count % size == 0) return;
  std::vector<Index> divisors;
  for (Index divisor = 1; divisor <= std::min(count, Index{4096}); ++divisor)
    if (count % divisor == 0) divisors.push_back(divisor);
  std::string const key = "train.accumulate";
  experiment.refuse(key, fmt::format("{} processes cannot share {} micro-batches evenly: start one of {} (mpirun -n), or set another {}",
                                     size, count, fmt::join(divisors, ", "), key));
}

}  // namespace

MemoryLimit within_available_memory() { return MemoryLimit(memory_use().live + static_cast<Index>(std::min(available_memory(), 1e18))); }

void judging(Document const& document, std::string const& section, std::function<void()> const& f) {
  try {
    f();
  } catch (ConfigError const&) {
    throw;
  } catch (FileError const&) {
    throw;
  } catch (OutOfMemory const& error) {
    if (std::isinf(error.available)) throw;  // the system has less than it said: not the file's fault
    std::string const key = document.root.find("data.tokens") != nullptr ? "data.tokens" : "train.batch";
    auto const [needed, available] = told_apart(error.needed / 1e9, error.available / 1e9);
    throw ConfigError(location_of(document, key),
                      fmt::format("{}: a training step needs at least {} GB of memory, and {} GB are available (a smaller {} with "
                                  "train.accumulate, a smaller model.context or model.width, or train.recompute: true needs less)",
                                  key, needed, available, key));
  } catch (Error const& error) {
    std::string const message = error.what();
    std::string const key = message.substr(0, message.find(": "));
    throw ConfigError(location_of(document, document.root.find(key) != nullptr ? key : section), message);
  }
}

/// Throws Error if the parameters alone need more memory than is available, before they are allocated.
void Trainer::check_parameters() const {
  Parameters counted = Parameters::counted(settings_.precision());
  auto const model = make_model(settings_.model, counted, data_->signature());
  double const bytes = static_cast<double>(counted.elements()) * static_cast<double>(bytes_of(settings_.precision()));
  double const available = available_memory();
  if (bytes <= available) return;
  auto const [needed, there] = told_apart(bytes / 1e9, available / 1e9);
  throw Error(fmt::format("model: its parameters need {} GB of memory, and {} GB are available", needed, there));
}

/// Checks that the data provide what training will ask for.
void Trainer::check_data() const {
  Index const context = model_->context();
  TrainSettings const& train = settings_.train;
  double const rows = static_cast<double>(train.steps) * static_cast<double>(train.accumulate) * static_cast<double>(train.batch);
  if (rows > 9e15) experiment_.refuse("train", fmt::format("{:.0g} sequences are too many to be numbered", rows));
  bool const weighs = std::ranges::any_of(model_->terms(), [](Term const& term) { return !term.of_classes.empty(); });
  if (data_->signature().has("label") && !data_->signature()["label"].weights.empty() && !weighs)
    experiment_.refuse("data.class_weights", "the model's loss is not that of classes (model.head: classification has them)");
  Experiment settings = settings_;
  Yaml const all = tree(settings);
  for (std::string const name : {"pairs", "keys"}) {  // single_attention's, "as data.pairs": a batch need not show that it lacks a key
    Yaml const *const own = all.find("model." + name), *const wanted = all.find("data." + name);
    if (own != nullptr && wanted != nullptr && own->text != wanted->text)
      experiment_.refuse("model." + name, fmt::format("{}, but data.{} is {}: the model reads as many", own->text, name, wanted->text));
  }
  judging(experiment_.document, "data", [&] {
    if (train.steps > 0) model_->check(data_->training(0, train.batch, context));
    if (train.steps > 0) data_->training(train.steps * train.accumulate - 1, train.batch, context);
    Index const held_out = train.evaluate.batch.value_or(train.batch);
    if (data_->validation_batches(held_out, context) > 0) data_->validation(0, held_out, context);
  });
}

/// Refuses probes that do not apply to the model.
void Trainer::check_probes() const {
  for (Probe const& probe : Registry<Probe>::all()) {
    auto const& asked = settings_.probes.asked.at(probe.group);
    auto const named = std::ranges::find(asked, probe.name);
    auto const unavailable = named != asked.end() && probe.unavailable ? probe.unavailable(*model_) : std::nullopt;
    if (!unavailable) continue;
    experiment_.refuse("probes." + probe.group, fmt::format("there is no {} here: {}", probe.name, *unavailable),
                       static_cast<std::size_t>(named - asked.begin()));
  }
}

/// Refuses an estimator that does not support the model's random choices.
void Trainer::check_estimator() const {
  if (settings_.train.steps == 0) return;
  std::string const of_cross = "model.cross_attention";
  auto const owner = experiment_.document.root.find(of_cross + ".estimator") != nullptr ? of_cross : "model.attention";
  Batch const row = data_->training(0, 1, model_->context()).first(1);
  judging(experiment_.document, owner, [&] {
    try {
      estimator_->check(*model_, row);
    } catch (Error const& error) {
      throw Error(fmt::format("{}.{}", owner, error.what()));  // the message begins with "estimator: "
    }
  });
}

/// Throws ConfigError now, rather than after the first evaluation, if an evaluation does not give the metric of train.select or train.stop.
void Trainer::check_selection() {
  TrainSettings const& train = settings_.train;
  auto const require = [&](std::string const& key, std::string const& metric) {
    auto const names = evaluated(metric);
    if (std::ranges::find(names, metric) != names.end()) return;
    auto const advice = names.empty() ? ": the data hold nothing out" : did_you_mean(metric, names);
    experiment_.refuse(key, fmt::format("an evaluation here gives no {}{}", metric, advice));
  };
  if (train.keeps_best()) require("train.select.metric", train.select.metric);
  if (train.stop.patience) require("train.stop.metric", train.stop.metric);
}

/// The metrics that an evaluation of one batch gives; of all if this one is not among them, since a group may be in a later batch.
std::vector<std::string> Trainer::evaluated(std::string const& metric) {
  Row row;
  evaluate(row, 1);
  if (row.find(metric) == nullptr) row = {}, evaluate(row);
  return mapped(row.values, [](auto const& each) { return each.first; });
}

void Trainer::require_metric(Location const& location, std::string const& metric) {
  std::vector<std::string> names{"loss", "grad_norm", "lr", "time.seconds", "time.tokens_per_second", "memory.peak"};
  auto const key = MetricKey::of(metric);
  if (key.is_held_out()) {
    names = evaluated(metric);
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

/// The optimizer of `train.optimizer`, with its groups. Throws ConfigError at the location of a group that does not fit the model, with the
/// nearest names if it matches none.
void Trainer::make_optimizer() {
  Choice const& choice = settings_.train.optimizer;
  auto const refuse = [&](std::string const& message, std::string const& more) {
    std::string const key = "train." + message.substr(0, message.find(": "));
    throw ConfigError(location_of(experiment_.document, key), "train." + message + more);
  };
  auto const& groups = optimizer_settings(choice).groups.items;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    auto const& pattern = groups[i].match;
    if (std::ranges::none_of(trained().all(), [&](auto const& each) { return matches(pattern, each.first); }))
      refuse(fmt::format("optimizer.groups.{}.match: '{}' matches no parameter", i, pattern), advice(pattern, trained()));
  }
  try {
    optimizer_ = heed::make_optimizer(choice, trained());
  } catch (OutOfMemory const&) {
    throw;
  } catch (Error const& error) {
    refuse(error.what(), "");
  }
}

void check_same_run(Trainer const& trainer, LoadedExperiment& experiment, fs::path const& folder, bool fresh) {
  std::vector<Json> all;
  for (auto const& text : ranks().gathered_texts(json_text(facts_of(trainer, experiment.settings, folder, fresh))))
    all.push_back(parse_json<Json>(text, "what another rank has sent"));
  if (auto const found = differences(all); !found.empty())
    throw ConfigError(fmt::format("the ranks of a run differ: {}", fmt::join(found, "; ")));
  check_ranks(experiment, ranks().size());
}

}  // namespace heed
