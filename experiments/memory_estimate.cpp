#include "experiments/memory_estimate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "experiments/record.hpp"

namespace heed {

namespace {

/// Of `rows` rows as long as the longest.
PassShape longest_rows(Signature const& data, Model const& model, std::int64_t rows) {
  auto const places = [&](std::string const& part) {
    std::int64_t const longest = data.has(part) ? data[part].longest : 0;
    return longest > 0 ? std::min(longest, model.context()) : model.context();
  };
  return {.batch = rows, .tokens = places("inputs"), .source = places("source")};
}

/// All samples of an estimator are in one pass; those of enumerate are up to 1024 rows.
double training_bytes(Experiment const& settings, Signature const& data, Model const& model) {
  std::int64_t rows = settings.train.batch;
  if (EstimatorSettings const* const chooses = model.estimator())
    rows = chooses->estimator == "enumerate" ? std::max<std::int64_t>(rows, 1024) : rows * chooses->samples;
  PassShape shape = longest_rows(data, model, rows);
  shape.recompute = settings.train.recompute;
  return model.peak_bytes(shape);
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
  if (!probes.curvature.empty()) {  // a graph of the pass and of its gradient, and the gradient of both
    shape.recorded = true;
    most = std::max(most, 3 * model.peak_bytes(shape));
  }
  if (probes.maps.examples > 0) {
    shape.batch = probes.maps.examples;
    shape.recorded = false;
    most = std::max(most, model.peak_bytes(shape));
  }
  return most;
}

}  // namespace

MemoryEstimate memory_estimate(Experiment const& settings, Signature const& data) {
  Parameters counted = Parameters::counted(settings.precision());
  auto const model = make_model(settings.model, counted, data);
  TrainSettings const& train = settings.train;
  double const gradients = static_cast<double>(bytes_of(settings.precision())) * static_cast<double>(counted.elements());
  double const copies = 3 + (train.ema ? 1 : 0) + (train.accumulate > 1 ? 1 : 0);
  double const tokens = static_cast<double>(train.batch) * static_cast<double>(train.accumulate) * static_cast<double>(model->context());
  return {copies * gradients, std::max({gradients, training_bytes(settings, data, *model), probe_bytes(settings, data, *model)}),
          2 * sizeof(std::int64_t) * tokens, model->context()};
}

void check_memory(LoadedExperiment const& experiment, Signature const& data) {
  Experiment const& settings = experiment.settings;
  MemoryEstimate const needed = memory_estimate(settings, data);
  double const available = available_memory();
  if (needed.total() <= available) return;
  auto const place = place_of(experiment.document, "model");
  throw ConfigError(
      place, fmt::format("the model and a batch need about {:.1f} GB, of which {:.1f} for a batch of {} × {} tokens; {:.1f} GB are free "
                         "(a smaller train.batch with train.accumulate, or train.recompute: true, needs less)",
                         needed.total() / 1e9, needed.pass / 1e9, settings.train.batch, needed.context, available / 1e9));
}

}  // namespace heed
