#include "experiments/run/memory_estimate.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "experiments/run/contexts.hpp"
#include "experiments/run/system.hpp"

namespace heed {

namespace {

/// Of `rows` rows as long as the longest, all of their sequences.
PassShape longest_rows(Signature const& data, Model const& model, std::int64_t rows) {
  auto const places = [&](std::string const& part) {
    std::int64_t const longest = data.has(part) ? data[part].longest : 0;
    return longest > 0 ? std::min(longest, model.context()) : model.context();
  };
  return {.batch = rows * data["inputs"].sequences, .tokens = places("inputs"), .source = places("source")};
}

/// The largest batches of training: of `rows` rows, `times` over; or, where data say how many places theirs have, of the longest rows of
/// either side.
std::vector<PassShape> training_shapes(Signature const& data, Model const& model, std::int64_t rows, std::int64_t times) {
  PassShape const longest = longest_rows(data, model, rows * times);
  std::int64_t const tokens = data["inputs"].places, source = data.has("source") ? data["source"].places : 0;
  if (tokens == 0) return {longest};
  auto const divided = [](std::int64_t places, std::int64_t by) { return (places + by - 1) / by; };
  std::vector<PassShape> shapes;
  for (std::int64_t const count : {divided(tokens, longest.tokens), divided(source, longest.source)}) {
    if (count == 0) continue;
    shapes.push_back({.batch = count * times,
                      .tokens = std::min(longest.tokens, divided(tokens, count)),
                      .source = std::min(longest.source, divided(source, count))});
  }
  return shapes;
}

/// All samples of an estimator are in one pass; where it sums over all choices, these are up to 1024 rows.
double training_bytes(Experiment const& settings, Signature const& data, Model const& model) {
  EstimatorSettings const* const chooses = model.estimator();
  bool const enumerates = chooses != nullptr && chooses->sums_over_choices();
  double most = 0;
  for (PassShape shape : training_shapes(data, model, settings.train.batch, chooses != nullptr && !enumerates ? chooses->samples : 1)) {
    if (enumerates) shape.batch = std::max<std::int64_t>(shape.batch, 1024);
    shape.recompute = settings.train.recompute;
    most = std::max(most, model.peak_bytes(shape));
  }
  return most;
}

/// Of the probes' batch and of the attention maps.
double probe_bytes(Experiment const& settings, Signature const& data, Model const& model) {
  ProbeSettings const& probes = settings.probes;
  PassShape shape = longest_rows(data, model, probes.rows.value_or(settings.train.batch));
  shape.recorded = shape.trains = false;
  shape.watched = true;
  double most = 0;
  if (!probes.attention.empty() || !probes.gradients.empty()) {
    shape.recorded = std::ranges::find(probes.gradients, "scores") != probes.gradients.end();
    most = model.peak_bytes(shape);
  }
  if (!probes.curvature.empty()) {  // graphs of the pass and of its gradient, and the gradient of both
    shape.watched = false;
    shape.recorded = true;
    shape.recompute = settings.train.recompute;
    shape.by_rows = true;
    most = std::max(most, 3.35 * model.peak_bytes(shape));
  }
  if (probes.maps.examples > 0) {
    shape.batch = probes.maps.examples;
    shape.recorded = false;
    most = std::max(most, model.peak_bytes(shape));
  }
  return most;
}

/// Of rows of the lengths that the loss is measured in besides.
double length_bytes(TrainSettings const& train, Model const& model) {
  double most = 0;
  for (double const length : train.evaluate.lengths) {
    auto const tokens = static_cast<std::int64_t>(length), rows = rows_at_once(train, model.context(), tokens);
    most = std::max(most, model.peak_bytes({.batch = rows, .tokens = tokens, .recorded = false, .trains = false}));
  }
  return most;
}

/// Elements of the parameters that are trained, at some time.
double trained_elements(TrainSettings const& train, Parameters const& parameters) {
  auto const& groups = optimizer_settings(train.optimizer).groups.items;
  std::int64_t trained = 0;
  for (auto const& [name, parameter] : parameters.all()) {
    GroupSettings const* const group = group_of(groups, name);
    if (group == nullptr || !group->frozen || group->unfreeze) trained += parameter.elements();
  }
  return static_cast<double>(trained);
}

/// Of a picture.
std::int64_t elements_of(Given const& part) { return part.shape[0] * part.shape[1] * part.shape[2]; }

}  // namespace

MemoryEstimate memory_estimate(Experiment const& settings, Signature const& data) {
  Parameters counted = Parameters::counted(settings.precision());
  auto const model = make_model(settings.model, counted, data);
  TrainSettings const& train = settings.train;
  auto const bytes = static_cast<double>(bytes_of(settings.precision()));
  double const gradients = bytes * trained_elements(train, counted), weights = bytes * static_cast<double>(counted.elements());
  double const kept = weights * (train.ema ? 2 : 1) + gradients * (train.accumulate > 1 ? 3 : 2);
  PassShape const longest = longest_rows(data, *model, train.batch);
  double const places = data["inputs"].places > 0 ? static_cast<double>(data["inputs"].places)
                                                  : static_cast<double>(longest.batch) * static_cast<double>(longest.tokens);
  double const tokens = places * static_cast<double>(train.accumulate);
  double pictures = 0;
  for (Given const& part : data.parts())
    if (!part.shape.empty()) pictures += static_cast<double>(train.batch * train.accumulate * elements_of(part)) * sizeof(std::int64_t);
  return {kept,
          std::max({gradients, training_bytes(settings, data, *model), probe_bytes(settings, data, *model), length_bytes(train, *model)}),
          2 * sizeof(std::int64_t) * tokens + pictures, model->context()};
}

void check_memory(LoadedExperiment const& experiment, Signature const& data) {
  Experiment const& settings = experiment.settings;
  MemoryEstimate const needed = memory_estimate(settings, data);
  double const available = available_memory();
  if (needed.total() <= available) return;
  auto const place = place_of(experiment.document, "model");
  std::int64_t const places = data["inputs"].places;
  std::string const batch =
      places > 0 ? fmt::format("{} places", places) : fmt::format("{} × {} tokens", settings.train.batch, needed.context);
  throw ConfigError(
      place, fmt::format("the model and a batch need about {:.1f} GB, of which {:.1f} for a batch of {}; {:.1f} GB are free "
                         "(a smaller {} with train.accumulate, or train.recompute: true, needs less)",
                         needed.total() / 1e9, needed.pass / 1e9, batch, available / 1e9, places > 0 ? "data.tokens" : "train.batch"));
}

}  // namespace heed
