#include "experiments/metric/probe/prober.hpp"

#include <algorithm>
#include <utility>

#include "autograd/graph.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

namespace {

/// Rows of random tokens whose second half is the first again.
Batch repetition(std::int64_t rows, std::int64_t context, std::int64_t vocabulary) {
  std::int64_t const half = context / 2;
  Stream const draws(0, "probe.induction");
  std::vector<std::int64_t> tokens;
  for (std::int64_t row = 0; row < rows; ++row) {
    Stream const of_row = draws.child(static_cast<std::uint64_t>(row));
    for (std::int64_t i = 0; i < 2 * half; ++i)
      tokens.push_back(
          static_cast<std::int64_t>(of_row.below(static_cast<std::uint64_t>(i % half), static_cast<std::uint64_t>(vocabulary))));
  }
  return {{"inputs", Tensor::of(tokens, {rows, 2 * half})}};
}

/// Whether a step's own pass shows it on the way.
bool needs_no_pass(Probe const& probe) { return probe.sees == Probe::Sees::attention || probe.sees == Probe::Sees::streams; }

}  // namespace

Observer const* Prober::watch() {
  if (settings_.batch != "step") return nullptr;
  step_ = {};
  layers_.clear(), blocks_.clear();
  auto const place = [](std::vector<std::string>& names, std::string const& name) {
    auto const found = std::ranges::find(names, name);
    auto const at = static_cast<std::size_t>(found - names.begin());
    if (found == names.end()) names.push_back(name);
    return at;
  };
  observer_ = {};
  auto const wanted = asked(true, true);
  auto const wants = [&](Probe::Sees kind) { return std::ranges::any_of(wanted, [&](auto* probe) { return probe->sees == kind; }); };
  if (wants(Probe::Sees::attention)) {
    observer_.attention_rows = [this, place](std::string const& layer, Tensor const& rows) {
      auto const at = place(layers_, layer);
      if (at == step_.attention.size()) step_.attention.emplace_back();
      step_.attention[at].rows.push_back(rows);
    };
  }
  if (wants(Probe::Sees::streams)) {
    observer_.stream = [this, place](std::string const& block, Tensor const& x) {
      Tensor const rows = x.detach().viewed({x.elements() / x.size(-1), x.size(-1)});
      auto const at = place(blocks_, block);
      if (at == step_.streams.size())
        step_.streams.push_back(rows);
      else
        step_.streams[at] = concatenate({step_.streams[at], rows}, 0);
    };
  }
  return &observer_;
}

std::vector<Probe const*> Prober::asked(bool of_step, bool stepping) const {
  std::vector<Probe const*> result;
  for (Probe const& probe : Registry<Probe>::all()) {
    auto const& names = asked_for(settings_, probe.group);
    bool const in_step = probe.sees == Probe::Sees::step || (stepping && settings_.batch == "step" && needs_no_pass(probe));
    bool const named = in_step == of_step && std::ranges::find(names, probe.name) != names.end();
    if (named && !(probe.lacks && probe.lacks(model_))) result.push_back(&probe);
  }
  return result;
}

Batch Prober::batch() const {
  bool const held_out = settings_.batch == "validation" && data_.validation_batches(rows_, model_.context()) > 0;
  return (held_out ? data_.validation(0, rows_, model_.context()) : data_.training(0, rows_, model_.context())).first(rows_);
}

Tensor Prober::loss(Batch const& batch, Observer const* observer) const {
  Choices expected;
  expected.mode = Choices::Mode::expectation;
  Pass pass;
  pass.observer = observer;
  pass.choices = &expected;
  pass.recompute = recompute_ && observer == nullptr;  // who watches sees each layer once
  pass.by_rows = observer == nullptr;                  // only curvature's passes are unwatched, and they are differentiated twice
  return model_.loss(batch, pass, smoothing_);
}

Sight Prober::sight(Batch const& batch, std::vector<Probe const*> const& asked) const {
  auto const wants = [&](Probe::Sees kind) { return std::ranges::any_of(asked, [&](auto* probe) { return probe->sees == kind; }); };
  bool const gradients = wants(Probe::Sees::score_gradients);
  Sight seen;
  std::vector<std::vector<Tensor>> scores;  // of a layer: whole, or query by query
  Observer observer;
  if (gradients || wants(Probe::Sees::attention)) {
    observer.attention = [&](std::string const&, AttentionView const& view) {
      seen.attention.push_back(Sight::Layer::of(view));
      if (gradients) scores.push_back(view.steps.empty() ? std::vector{view.scores} : std::vector(view.steps.begin(), view.steps.end()));
    };
  }
  if (wants(Probe::Sees::streams)) observer.stream = [&](std::string const&, Tensor const& x) { seen.streams.push_back(x); };
  bool const recurrences = wants(Probe::Sees::recurrences);
  if (recurrences)
    observer.recurrence = [&](std::string const&, std::span<Tensor const> outputs) {
      seen.recurrences.emplace_back(outputs.begin(), outputs.end());
    };
  if (!observer.attention && !observer.stream && !recurrences) return seen;
  Recording const recorded(gradients || recurrences);
  Tensor const mean_loss = loss(batch, &observer);
  if (!gradients) return seen;
  std::vector<Tensor> all;
  for (auto const& layer : scores) all.insert(all.end(), layer.begin(), layer.end());
  auto const found = grad({mean_loss}, all);
  auto next = found.begin();
  for (std::size_t l = 0; l < scores.size(); ++l) {
    auto const first = std::exchange(next, next + std::ssize(scores[l]));
    seen.attention[l].gradient = scores[l].size() == 1 ? *first : concatenate({first, next}, 2);
  }
  return seen;
}

Sight Prober::sight_of_repetition() const {
  NoGrad const no_grad;
  Sight seen;
  Observer observer;
  observer.attention = [&](std::string const&, AttentionView const& view) { seen.attention.push_back(Sight::Layer::of(view)); };
  Choices expected;
  expected.mode = Choices::Mode::expectation;
  Pass pass;
  pass.observer = &observer;
  pass.choices = &expected;
  model_.run(repetition(rows_, model_.context(), model_.vocabulary()), pass);
  return seen;
}

void Prober::look(Row& row, bool stepping) const {
  look(row, stepping, [this] { return batch(); });
}

void Prober::look(Row& row, bool stepping, std::function<Batch()> const& made) const {
  auto wanted = asked(false, stepping);
  if (wanted.empty()) return;
  auto const again =
      std::stable_partition(wanted.begin(), wanted.end(), [](auto* probe) { return probe->sees != Probe::Sees::repetition; });
  if (wanted.begin() != again) {
    Batch const rows = made();
    Probed const probed{settings_, parameters_, sight(rows, wanted), [&] { return loss(rows, nullptr); }};
    for (auto probe = wanted.begin(); probe != again; ++probe) (*probe)->measure(probed, row);
  }
  if (again == wanted.end()) return;
  Probed const repeated{settings_, parameters_, sight_of_repetition(), {}};
  for (auto probe = again; probe != wanted.end(); ++probe) (*probe)->measure(repeated, row);
}

void Prober::read_step(Row& row) {
  Probed const probed{settings_, parameters_, std::exchange(step_, {}), {}};
  for (Probe const* probe : asked(true, true)) probe->measure(probed, row);
}

}  // namespace heed
