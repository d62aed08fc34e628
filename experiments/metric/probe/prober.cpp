#include "experiments/metric/probe/prober.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "autograd/graph.hpp"
#include "autograd/ops/shape.hpp"
#include "experiments/metric/probe/attention_maps.hpp"

namespace heed {

template void Registry<Probe>::add(Probe);

namespace {

constexpr double max_steps = 1e12;

std::vector<std::string> probe_names(std::string const& group) {
  std::vector<std::string> result;
  for (Probe const& probe : Registry<Probe>::all())
    if (probe.group == group) result.push_back(probe.name);
  return result;
}

/// Rows of random tokens whose second half is the first again.
Batch repetition(Index rows, Index context, Index vocabulary) {
  Index const half = context / 2;
  Stream const draws(0, "probe.induction");
  std::vector<Index> tokens;
  for (Index row = 0; row < rows; ++row) {
    Stream const of_row = draws.child(static_cast<std::uint64_t>(row));
    for (Index i = 0; i < 2 * half; ++i)
      tokens.push_back(static_cast<Index>(of_row.below(static_cast<std::uint64_t>(i % half), static_cast<std::uint64_t>(vocabulary))));
  }
  return {{"inputs", Tensor::of(tokens, {rows, 2 * half})}};
}

bool any_reads(std::vector<Probe const*> const& probes, Probe::Input input) {
  return std::ranges::find(probes, input, &Probe::input) != probes.end();
}

/// Whether the pass of a training step provides its input.
bool needs_no_pass(Probe const& probe) { return probe.input == Probe::Input::attention || probe.input == Probe::Input::streams; }

}  // namespace

std::vector<Field> MapSettings::fields() {
  return {
      field(&examples, "examples", "number of validation sequences whose attention maps are saved, in attention/step-….npz").in(0, 4096),
      field(&every, "every", "steps between maps; the final weights are always included").in(1, max_steps),
  };
}

std::vector<Field> ProbeSettings::fields() {
  return {
      field(&every, "every", "steps between probes; the final weights are always probed").in(1, max_steps),
      field(&batch, "batch",
            "data of the probes. validation (default; training if there is none) or training: the first batch, the same throughout a run, "
            "in a separate pass without dropout and with expected hard reads; step: each step's training batch in its own pass, at almost "
            "no cost. Probes that need a pass of their own, and all probes of the final weights, then use the first training batch")
          .one_of({"validation", "training", "step"}),
      field(&rows, "rows", "sequences of that batch; default: train.batch").in(1, 1 << 20),
      field(&asked.at("attention"), "attention", "statistics of attention by layer and head").one_of(probe_names("attention")),
      field(&asked.at("gradients"), "gradients",
            "gradient statistics; norms are of the training step's gradient, as grad_norm, the others of the probes' batch")
          .one_of(probe_names("gradients")),
      field(&asked.at("activations"), "activations", "statistics of activations by layer").one_of(probe_names("activations")),
      field(&asked.at("curvature"), "curvature", "curvature of the loss").one_of(probe_names("curvature")),
      field(&iterations, "iterations", "sharpness: largest number of Hessian-vector products").in(1, 1e6),
      field(&tolerance, "tolerance", "sharpness: stop when ‖Hv − λv‖ ≤ tolerance · |λ|").between(0, 1),
      field(&maps, "maps", "attention maps on disk"),
  };
}

std::optional<std::string> ProbeSettings::contradiction() {
  for (auto const& field : fields())
    if (auto* const* const names = std::get_if<std::vector<std::string>*>(&field.target))
      for (auto const& name : **names)
        if (std::ranges::count(**names, name) > 1) return fmt::format("{}: '{}' is listed twice", field.name, name);
  return std::nullopt;
}

Observer const* Prober::watch() {
  if (settings_.batch != "step") return nullptr;
  auto const wanted = selected(true, true);
  auto const wants = [&](Probe::Input input) { return any_reads(wanted, input); };
  recorder_ = AttentionRecorder({.rows = wants(Probe::Input::attention), .join_passes = true});
  streams_.clear(), blocks_.clear();
  observer_ = {.attention = &recorder_};
  if (wants(Probe::Input::streams)) {
    observer_.stream = [this](std::string const& block, Tensor const& x) {
      Tensor const rows = x.detach().viewed({x.elements() / x.size(-1), x.size(-1)});
      auto const at = static_cast<std::size_t>(std::ranges::find(blocks_, block) - blocks_.begin());
      if (at < streams_.size()) {
        streams_[at] = concatenate({streams_[at], rows}, 0);
      } else {
        blocks_.push_back(block);
        streams_.push_back(rows);
      }
    };
  }
  return &observer_;
}

std::vector<Probe const*> Prober::selected(bool of_step, bool stepping) const {
  std::vector<Probe const*> result;
  for (Probe const& probe : Registry<Probe>::all()) {
    auto const& names = settings_.asked.at(probe.group);
    bool const in_step = probe.input == Probe::Input::step || (stepping && settings_.batch == "step" && needs_no_pass(probe));
    bool const named = in_step == of_step && std::ranges::find(names, probe.name) != names.end();
    if (named && !(probe.unavailable && probe.unavailable(model_))) result.push_back(&probe);
  }
  return result;
}

Tensor Prober::loss(Batch const& batch, Observer const* observer) const {
  HardChoices expected{.mode = HardChoices::Mode::expectation, .made = {}, .codes = {}};
  Pass pass;
  pass.watching.observer = observer;
  pass.watching.hard_choices = &expected;
  pass.training.recompute = recompute_ && observer == nullptr;  // an observer must see each layer once
  return model_.loss(batch, pass, smoothing_);
}

Probed Prober::probed(Batch const& batch, std::vector<Probe const*> const& selected) const {
  auto const wants = [&](Probe::Input input) { return any_reads(selected, input); };
  bool const gradients = wants(Probe::Input::score_gradients), attention = gradients || wants(Probe::Input::attention);
  bool const recurrences = wants(Probe::Input::recurrences);
  Probed input{settings_, parameters_};
  AttentionRecorder recorder({.weights = attention, .scores = gradients, .rows = attention});
  Observer observer{.attention = &recorder};
  if (wants(Probe::Input::streams)) observer.stream = [&](std::string const&, Tensor const& x) { input.streams.push_back(x); };
  if (recurrences)
    observer.recurrence = [&](std::string const&, std::span<Tensor const> outputs) {
      input.recurrences.emplace_back(outputs.begin(), outputs.end());
    };
  if (!attention && !observer.stream && !recurrences) return input;
  Recording const recorded(gradients || recurrences);
  Tensor const mean_loss = loss(batch, &observer);
  input.attention = recorder.records();
  if (!gradients) return input;
  std::vector<Tensor> all;
  for (auto const& layer : input.attention) all.insert(all.end(), layer.steps.begin(), layer.steps.end());
  auto const found = grad({mean_loss}, all);
  auto next = found.begin();
  for (auto& layer : input.attention) {
    if (layer.steps.empty()) continue;  // linear attention has no scores
    auto const first = std::exchange(next, next + std::ssize(layer.steps));
    layer.gradient = layer.steps.size() == 1 ? *first : concatenate({first, next}, 2);
  }
  return input;
}

void Prober::observe(Row& row, bool stepping) const {
  auto wanted = selected(false, stepping);
  if (wanted.empty()) return;
  auto const again =
      std::stable_partition(wanted.begin(), wanted.end(), [](auto* probe) { return probe->input != Probe::Input::repetition; });
  if (wanted.begin() != again) {
    Index const context = model_.context();
    bool const held_out = settings_.batch == "validation" && data_.validation_batches(rows_, context) > 0;
    Batch const rows = (held_out ? data_.validation(0, rows_, context) : data_.training(0, rows_, context)).first(rows_);
    Probed input = probed(rows, wanted);
    input.loss = [&] { return loss(rows, nullptr); };
    for (auto probe = wanted.begin(); probe != again; ++probe) (*probe)->measure(input, row);
  }
  if (again == wanted.end()) return;
  NoGrad const no_grad;
  HardChoices expected{.mode = HardChoices::Mode::expectation, .made = {}, .codes = {}};
  Pass pass;
  pass.watching.hard_choices = &expected;
  Batch const twice = repetition(rows_, model_.context(), model_.vocabulary());
  Probed const repeated{settings_, parameters_, recorded_attention(model_, twice, {.weights = true}, pass)};
  for (auto probe = again; probe != wanted.end(); ++probe) (*probe)->measure(repeated, row);
}

void Prober::read_step(Row& row) {
  Probed const input{settings_, parameters_, recorder_.records(), std::exchange(streams_, {})};
  recorder_ = AttentionRecorder({});
  for (Probe const* probe : selected(true, true)) probe->measure(input, row);
}

}  // namespace heed
