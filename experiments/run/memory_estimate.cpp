#include "experiments/run/memory_estimate.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "autograd/graph_memory.hpp"
#include "autograd/memory.hpp"
#include "autograd/ops/loss.hpp"
#include "experiments/metric/probe/attention_maps.hpp"
#include "experiments/metric/probe/prober.hpp"
#include "experiments/run/contexts.hpp"
#include "experiments/run/gradient_sum.hpp"
#include "experiments/run/system.hpp"
#include "nn/estimator.hpp"

namespace heed {

namespace {

/// Numbers of tokens of a target or text, and of its source.
struct Lengths {
  std::int64_t tokens, source;
};

using Callback = std::function<void()>;

/// A pass over a batch, as a function of its number of rows (sequences, or examples of several). `forward` is called when the graph exists,
/// but not yet its gradient.
struct Load {
  std::int64_t rows;
  std::function<void(std::int64_t rows, Callback const& forward)> pass;
};

/// Bytes that a pass holds.
struct Held {
  double graph = 0;  ///< after its forward part
  double peak = 0;
};

Lengths longest(Signature const& data, Model const& model) {
  auto const of = [&](std::string const& part) {
    std::int64_t const most = data.has(part) ? data[part].longest : 0;
    return most > 0 ? std::min(most, model.context()) : model.context();
  };
  return {of("inputs"), of("source")};
}

/// A part of a row, [1, …, T], repeated or cut so that it has `length` positions.
Tensor stretched(Tensor const& part, std::int64_t length) {
  auto const all = part.data<std::int64_t>();
  std::int64_t const places = part.size(-1);
  std::vector<std::int64_t> shape(part.shape().begin(), part.shape().end()), result;
  shape.back() = length;
  for (std::int64_t first = 0; first < std::ssize(all); first += places)
    for (std::int64_t i = 0; i < length; ++i) result.push_back(all[static_cast<std::size_t>(first + i % places)]);
  return Tensor::of(result, Shape(shape));
}

/// A batch of `count` copies of this row, stretched to these lengths.
Batch rows_of(Batch const& row, std::int64_t count, Lengths const& lengths) {
  Batch result;
  std::int64_t const tokens = row["inputs"].size(-1);
  for (auto const& [name, tensor] : row.parts()) {
    Tensor const& part = tensor;
    auto const filled = [&](std::int64_t length) { return Tensor::full(part.shape(), static_cast<double>(length), DType::int64); };
    if (name == "lengths")
      result.set(name, filled(lengths.tokens));
    else if (name == "source_lengths")
      result.set(name, filled(lengths.source));
    else if (name == "source")
      result.set(name, stretched(part, lengths.source));
    else if (part.dtype() == DType::int64 && (part.rank() == 2 || part.rank() == 3) && part.size(-1) == tokens)
      result.set(name, stretched(part, lengths.tokens));
    else
      result.set(name, part);
  }
  return result.chosen(std::vector<std::int64_t>(static_cast<std::size_t>(count), 0));
}

/// While it lives, the engine's size limits for arrays that it holds whole (recompute_bytes(), logits_bytes()) are scaled by rows / of, so
/// that a smaller batch is treated as the whole one would be.
class InProportion {
 public:
  InProportion(std::int64_t rows, std::int64_t of) : recompute_(recompute_bytes()), logits_(logits_bytes()) {
    auto const part = [&](std::int64_t bytes) {
      return static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(rows) / static_cast<double>(of));
    };
    set_recompute_bytes(part(recompute_));
    set_logits_bytes(part(logits_));
  }
  ~InProportion() {
    set_recompute_bytes(recompute_);
    set_logits_bytes(logits_);
  }
  InProportion(InProportion const&) = delete;
  InProportion& operator=(InProportion const&) = delete;

 private:
  std::int64_t recompute_, logits_;
};

/// Bytes that a pass over `rows` of the load holds, measured. If memory does not suffice, the peak that was reached; zeros if the pass
/// throws for another reason, which the real pass will report.
Held held(Load const& load, std::int64_t rows, double free) {
  InProportion const thresholds(rows, load.rows);
  MemoryUse const before = memory_use();
  auto const more = [&](std::int64_t bytes) { return static_cast<double>(bytes - before.live); };
  MemoryLimit const limit(before.live + static_cast<std::int64_t>(std::min(free, 1e18)));
  Held result;
  reset_memory_peak();
  try {
    load.pass(rows, [&] { result.graph = more(memory_use().live); });
  } catch (Error const&) {
    if (double const peak = more(memory_use().peak); peak > free) return {0, peak};
    return {};
  }
  result.peak = more(memory_use().peak);
  return result;
}

/// Upper bound for `rows` sequences, from the peak `one` of a single one: bytes grow at most in proportion to sequences, and blocks are
/// rounded up by at most a quarter.
double bound(double one, std::int64_t rows) { return 1.25 * one * static_cast<double>(rows); }

/// Bytes of the whole load, extrapolated linearly from a quarter and a half of its rows, or from fewer if these might not fit into half of
/// the free memory. Graph and peak are extrapolated separately: with few rows the peak may be that of the parameters' gradients, with more
/// that of the graph, which grows faster. Returns `least` if the load needs no more than that.
double extrapolated(Load const& load, double least, double free) {
  std::map<std::int64_t, Held> known;
  auto const of = [&](std::int64_t rows) {
    auto const found = known.find(rows);
    return found != known.end() ? found->second : known[rows] = held(load, rows, free);
  };
  auto const line = [&](std::int64_t less, std::int64_t more) {
    auto const at_all = [&](double Held::*bytes) {
      double const slope = (of(more).*bytes - of(less).*bytes) / static_cast<double>(more - less);
      return of(more).*bytes + std::max(slope, 0.0) * static_cast<double>(load.rows - more);
    };
    return std::max(at_all(&Held::graph), at_all(&Held::peak));
  };
  if (bound(of(1).peak, load.rows) <= least) return least;
  if (load.rows <= 2) return of(load.rows).peak;
  if (double const first = line(1, 2); first > 2 * free) return first;
  std::int64_t rows = std::max<std::int64_t>(2, load.rows / 2);
  while (rows > 2 && bound(of(1).peak, rows) > free / 2) rows /= 2;
  return line(rows / 2, rows);
}

void clear_gradients(Parameters const& parameters) {
  for (auto [name, parameter] : parameters.all()) parameter.clear_grad();
}

/// The passes of a run, over batches made of one row of its data.
class Loads {
 public:
  Loads(Experiment const& settings, Dataset const& data, Model const& model, Parameters const& parameters)
      : settings_(settings), data_(data), signature_(data.signature()), model_(model), parameters_(parameters) {
    bool const held_out = settings.train.steps == 0 && data.validation_batches(1, model.context()) > 0;
    row_ = (held_out ? data.validation(0, 1, model.context()) : data.training(0, 1, model.context())).first(1);
  }

  /// The largest batches of training: train.batch rows; or, if the data limit the positions of a batch, the batches with the longest inputs
  /// and with the longest sources.
  std::vector<Load> training() const {
    Lengths const all = longest(signature_, model_);
    std::int64_t const tokens = signature_["inputs"].places, source = signature_.has("source") ? signature_["source"].places : 0;
    if (tokens == 0) return {trained(settings_.train.batch, all)};
    auto const divided = [](std::int64_t places, std::int64_t by) { return (places + by - 1) / by; };
    std::vector<Load> loads;
    for (std::int64_t const count : {divided(tokens, all.tokens), divided(source, all.source)})
      if (count > 0)
        loads.push_back(trained(count, {std::min(all.tokens, divided(tokens, count)), std::min(all.source, divided(source, count))}));
    return loads;
  }

  /// Passes besides those of training: probes, attention maps, and the loss at further lengths.
  std::vector<Load> others() const {
    ProbeSettings const& probes = settings_.probes;
    Lengths const all = longest(signature_, model_);
    std::vector<Load> loads;
    if (probes.any())
      loads.push_back({probes.rows.value_or(settings_.train.batch), [this, all](std::int64_t rows, Callback const&) { probe(rows, all); }});
    if (probes.maps.examples > 0)
      loads.push_back({probes.maps.examples,
                       [this, all](std::int64_t rows, Callback const&) { attention_maps(model_, rows_of(row_, rows, all), {}); }});
    for (double const each : settings_.train.evaluate.lengths) {
      auto const length = static_cast<std::int64_t>(each);
      loads.push_back({rows_at_once(settings_.train, model_.context(), length), [this, length](std::int64_t rows, Callback const&) {
                         NoGrad const quiet;
                         model_.run(rows_of(row_, rows, {length, length}), {});
                       }});
    }
    return loads;
  }

 private:
  Load trained(std::int64_t rows, Lengths const& lengths) const {
    return {rows, [this, lengths](std::int64_t count, Callback const& forward) { train(rows_of(row_, count, lengths), forward); }};
  }

  void train(Batch const& batch, Callback const& forward) const {
    TrainSettings const& train = settings_.train;
    Prober prober(settings_.probes, train.batch, train.label_smoothing, model_, parameters_, data_);
    Pass pass;
    pass.training.noise = Stream(0, "memory estimate");
    pass.training.recompute = train.recompute;
    pass.watching.observer = settings_.probes.any() ? prober.watch() : nullptr;
    Recording const recorded(train.steps > 0);
    if (EstimatorSettings const* const chooses = model_.estimator(); chooses != nullptr && train.steps > 0) {
      EstimatorSettings samples = *chooses;
      samples.expectation_rate = 0;
      Estimator(samples).accumulate(model_, batch, pass, train.label_smoothing, model_.counts(batch).targets.front());
    } else {
      Tensor const loss = model_.loss(batch, pass, train.label_smoothing);
      forward();
      if (train.steps > 0) loss.backward();
    }
    if (train.accumulate == 1) clear_gradients(parameters_);
  }

  void probe(std::int64_t rows, Lengths const& lengths) const {
    ProbeSettings settings = settings_.probes;
    settings.iterations = 1;
    settings.rows = rows;
    TrainSettings const& train = settings_.train;
    Row row;
    Prober(settings, rows, train.label_smoothing, model_, parameters_, data_, train.recompute)
        .observe_batch(rows_of(row_, rows, lengths), row);
  }

  Experiment const& settings_;
  Dataset const& data_;
  Signature signature_;
  Model const& model_;
  Parameters const& parameters_;
  Batch row_;
};

/// Elements of the parameters that are trained at some time.
double trained_elements(TrainSettings const& train, Parameters const& parameters) {
  auto const& groups = optimizer_settings(train.optimizer).groups.items;
  std::int64_t trained = 0;
  for (auto const& [name, parameter] : parameters.all()) {
    GroupSettings const* const group = group_of(groups, name);
    if (group == nullptr || !group->frozen || group->unfreeze) trained += parameter.elements();
  }
  return static_cast<double>(trained);
}

/// Elements of an image.
std::int64_t elements_of(PartSpec const& part) { return part.shape[0] * part.shape[1] * part.shape[2]; }

/// The estimate without running passes: of their memory, it includes only the gradients.
MemoryEstimate counted_estimate(Experiment const& settings, Signature const& data, Model const& model, Parameters const& parameters) {
  TrainSettings const& train = settings.train;
  auto const bytes = static_cast<double>(bytes_of(settings.precision()));
  double const gradients = bytes * trained_elements(train, parameters), weights = bytes * static_cast<double>(parameters.elements());
  double const sets = train.accumulate > 1 ? 3 + static_cast<double>(most_held(train.accumulate)) : 2;
  double const kept = weights * (train.ema ? 2 : 1) + gradients * sets;
  PartSpec const inputs = data["inputs"];
  double const places = inputs.places > 0
                            ? static_cast<double>(inputs.places)
                            : static_cast<double>(train.batch * inputs.sequences) * static_cast<double>(longest(data, model).tokens);
  double pictures = 0;
  for (PartSpec const& part : data.parts())
    if (!part.shape.empty()) pictures += static_cast<double>(train.batch * train.accumulate * elements_of(part)) * sizeof(std::int64_t);
  return {kept, gradients, 2 * sizeof(std::int64_t) * places * static_cast<double>(train.accumulate) + pictures, model.context()};
}

/// Returns the bytes of a load, which matter only if they exceed `least`.
using Measure = std::function<double(Load const& load, double least)>;

MemoryEstimate estimate(Experiment const& settings, Dataset const& data, Model const& model, Parameters const& parameters,
                        Measure const& measure) {
  MemoryEstimate result = counted_estimate(settings, data.signature(), model, parameters);
  double const gradients = result.pass;
  clear_gradients(parameters);
  try {
    Loads const loads(settings, data, model, parameters);
    for (Load const& load : loads.training()) {
      if (settings.train.accumulate > 1) load.pass(1, [] {});
      result.pass = std::max(result.pass, measure(load, result.pass));
    }
    for (Load const& load : loads.others()) result.pass = std::max(result.pass, gradients + measure(load, result.pass - gradients));
  } catch (Error const&) {
    // data without a row are reported where a row is needed
  }
  clear_gradients(parameters);
  release_idle_memory();
  reset_memory_peak();
  return result;
}

[[noreturn]] void refuse(LoadedExperiment const& experiment, Signature const& data, MemoryEstimate const& needed, double available) {
  auto const place = place_of(experiment.document, "model");
  std::int64_t const places = data["inputs"].places;
  std::string const batch =
      places > 0 ? fmt::format("{} positions", places) : fmt::format("{} × {} tokens", experiment.settings.train.batch, needed.context);
  throw ConfigError(
      place, fmt::format("the model and a batch need about {:.1f} GB, of which {:.1f} for a batch of {}; {:.1f} GB are free "
                         "(a smaller {} with train.accumulate, or train.recompute: true, needs less)",
                         needed.total() / 1e9, needed.pass / 1e9, batch, available / 1e9, places > 0 ? "data.tokens" : "train.batch"));
}

}  // namespace

MemoryEstimate memory_estimate(Experiment const& settings, Dataset const& data, Model const& model, Parameters const& parameters) {
  double const free = available_memory();
  return estimate(settings, data, model, parameters, [free](Load const& load, double least) { return extrapolated(load, least, free); });
}

void check_parameters(LoadedExperiment const& experiment, Dataset const& data) {
  Parameters counted = Parameters::counted(experiment.settings.precision());
  auto const model = make_model(experiment.settings.model, counted, data.signature());
  MemoryEstimate const needed = counted_estimate(experiment.settings, data.signature(), *model, counted);
  if (double const available = available_memory(); needed.weights + needed.pass > available)
    refuse(experiment, data.signature(), needed, available);
}

void check_memory(LoadedExperiment const& experiment, Dataset const& data, Model const& model, Parameters const& parameters) {
  Experiment const& settings = experiment.settings;
  double const free = available_memory();
  // The estimate includes the parameters, which are allocated already.
  double const available = free + static_cast<double>(parameters.elements()) * static_cast<double>(bytes_of(settings.precision()));
  auto const by_one = [free](Load const& load, double) { return bound(held(load, 1, free).peak, load.rows); };
  if (estimate(settings, data, model, parameters, by_one).total() <= available) return;
  MemoryEstimate const needed = memory_estimate(settings, data, model, parameters);
  if (needed.total() > available) refuse(experiment, data.signature(), needed, available);
}

}  // namespace heed
