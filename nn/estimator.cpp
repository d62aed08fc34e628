#include "nn/estimator.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/graph.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"

namespace heed {

namespace {

constexpr char const* average_name = "estimator.moving_average";
constexpr double max_combinations = 1 << 16;
constexpr Index rows_at_once = 1024;

/// The batch `count` times: row k·B + b is row b.
Batch repeated(Batch const& batch, Index count) {
  if (count == 1) return batch;
  auto const again = [count](Tensor const& rows) { return concatenate(std::vector(static_cast<std::size_t>(count), rows), 0); };
  Batch result;
  for (auto const& [name, part] : batch.parts()) result.set(name, again(part));
  return result;
}

/// Sums over the positions that each choice of a read affects: [B, T] → [B, 1, n], or [B, 1, 1] if every choice affects all.
Tensor touched(Tensor const& by_position, HardChoices::Made const& made) {
  bool const of_position = made.probability.size(2) == by_position.size(1);
  if (!of_position || made.reach == HardChoices::Reach::sequence) return unsqueeze(sum(by_position, {1}, true), 1);
  return unsqueeze(made.reach == HardChoices::Reach::later ? cumsum(by_position, 1, true) : by_position, 1);
}

/// The choices of a pass without a gradient, in which each sequence's code is 0.
HardChoices first_choices(Model const& model, Batch const& batch, HardChoices::Mode mode) {
  NoGrad const quiet;
  HardChoices choices{.mode = mode, .made = {}, .codes = std::vector<Index>(static_cast<std::size_t>(batch.rows()), 0)};
  Pass pass;
  pass.watching.hard_choices = &choices;
  model.logits(batch, pass);
  return choices;
}

/// 1 where a target counts, else 0.
Tensor counting(Tensor const& targets, DType dtype) {
  auto const counts = mapped(targets.data<std::int64_t>(), [](Index target) { return target >= 0 ? 1.0 : 0.0; });
  return Tensor::of(counts, targets.shape(), dtype);
}

/// How many there are of choices a sequence.
double combinations(Model const& model, Batch const& batch) {
  HardChoices const choices = first_choices(model, batch, HardChoices::Mode::given);
  if (choices.combinations <= max_combinations) return choices.combinations;
  throw Error(
      fmt::format("estimator: enumerate would sum over {:.3g} combinations of choices per sequence, more than {:.0f}; use fewer layers, "
                  "heads or positions, or reinforce",
                  choices.combinations, max_combinations));
}

double enumerate(Model const& model, Batch const& batch, Pass pass, double label_smoothing, double targets) {
  auto const all = static_cast<Index>(combinations(model, batch));
  Index const sequences = batch.rows();
  Index const at_once = std::clamp<Index>(rows_at_once / sequences, 1, all);
  double loss = 0;
  for (Index first = 0; first < all; first += at_once) {
    Index const count = std::min(at_once, all - first);
    HardChoices choices{.mode = HardChoices::Mode::given, .made = {}, .codes = {}};
    for (Index code = first; code < first + count; ++code)
      choices.codes.insert(choices.codes.end(), static_cast<std::size_t>(sequences), code);
    pass.watching.hard_choices = &choices;
    Batch const rows = repeated(batch, count);
    Tensor const losses = sum(token_losses(model.logits(rows, pass), rows["targets"], label_smoothing), {1});

    Tensor probability = Tensor::ones(losses.shape(), losses.dtype());
    for (auto const& made : choices.made) {
      for (Index h = 0; h < made.probability.size(1); ++h) {
        for (Index i = 0; i < made.probability.size(2); ++i)
          probability = probability * reshape(slice(slice(made.probability, 1, h, h + 1), 2, i, i + 1), {-1});
      }
    }
    Tensor const expected = scale(sum(probability * losses), 1 / targets);
    expected.backward();
    loss += expected.item();
  }
  return loss;
}

Index single_choice_keys(Model const& model, Batch const& batch) {
  HardChoices const choices = first_choices(model, batch, HardChoices::Mode::one);
  bool const single = choices.made.size() == 1 && choices.made[0].probability.size(1) == 1;
  if (!single || choices.made[0].reach != HardChoices::Reach::position)
    throw Error(
        "estimator: marginal sums over one choice at a time: it needs one head only, whose choice affects one output token only, such as a "
        "recurrent decoder's in Luong's style without input feeding");
  return static_cast<Index>(choices.combinations);
}

double marginal(Model const& model, Batch const& batch, Pass pass, double label_smoothing, double targets) {
  Index const keys = single_choice_keys(model, batch), at_once = std::max<Index>(1, rows_at_once / keys);
  double loss = 0;
  for (Index first = 0; first < batch.rows(); first += at_once) {
    std::vector<Index> numbers;
    for (Index row = first; row < std::min(first + at_once, batch.rows()); ++row) numbers.push_back(row);
    HardChoices choices{.mode = HardChoices::Mode::one, .made = {}, .codes = {}};
    for (Index key = 0; key < keys; ++key) choices.codes.insert(choices.codes.end(), numbers.size(), key);
    pass.watching.hard_choices = &choices;
    Batch const some = batch.chosen(numbers), rows = repeated(some, keys);
    Tensor const losses = token_losses(model.logits(rows, pass), rows["targets"], label_smoothing);
    // log 0 is undefined: a smaller weight than any that counts replaces 0, without a gradient.
    Tensor const a = clamp(squeeze(choices.made[0].probability, 1), 1e-30, 1);
    Tensor const joint = reshape(log(a) - losses, {keys, std::ssize(numbers), -1});
    Tensor const counts = counting(some["targets"], losses.dtype());
    Tensor const found = scale(sum(logsumexp(joint, {0}) * counts), -1 / targets);
    found.backward();
    loss += found.item();
  }
  return loss;
}

}  // namespace

Tensor token_losses(Tensor const& logits, Tensor const& targets, double label_smoothing) {
  Tensor const scores = log_softmax(logits, -1);
  auto const index = mapped(targets.data<std::int64_t>(), [](Index target) { return std::max<Index>(target, 0); });
  Tensor losses = -squeeze(gather(scores, -1, unsqueeze(Tensor::of(index, targets.shape()), -1)), -1);
  if (label_smoothing > 0) losses = scale(losses, 1 - label_smoothing) - scale(mean(scores, {-1}), label_smoothing);
  return losses * counting(targets, logits.dtype());
}

void Estimator::check(Model const& model, Batch const& batch) const {
  if (model.terms().size() > 1) throw Error("estimator: hard attention needs a loss with a single term");
  if (model.terms().front().targets != Term().targets)
    throw Error("estimator: hard attention needs a model that predicts tokens; this one's head predicts something else");
  if (settings_.estimator == "enumerate") combinations(model, batch);
  if (settings_.estimator == "marginal") single_choice_keys(model, batch);
}

double Estimator::accumulate(Model const& model, Batch const& batch, Pass const& given, double label_smoothing, double targets) {
  if (settings_.estimator == "enumerate") return enumerate(model, batch, given, label_smoothing, targets);
  if (settings_.estimator == "marginal") return marginal(model, batch, given, label_smoothing, targets);
  bool const reinforces = settings_.estimator == "reinforce";
  bool const expects =
      reinforces && given.training.noise && given.training.noise->child("expectation").uniform(0) < settings_.expectation_rate;
  Index const samples = expects ? 1 : settings_.samples;

  HardChoices choices;
  if (expects) choices.mode = HardChoices::Mode::expectation;
  Pass pass = given;
  pass.watching.hard_choices = &choices;
  Batch const rows = repeated(batch, samples);
  Tensor const losses = token_losses(model.logits(rows, pass), rows["targets"], label_smoothing);
  double const share = 1 / (static_cast<double>(samples) * targets);
  Tensor const loss = scale(sum(losses), share);

  // The gradient of `objective` is the estimate.
  Tensor objective = loss;
  if (!choices.made.empty()) {
    Tensor const found = losses.detach();
    Tensor const expected = baseline(found, model, batch, given, label_smoothing);
    Tensor const advantage = scale(expected.defined() ? found - expected : found, settings_.reward_weight * share);
    for (auto const& made : choices.made) {
      objective = objective + sum(touched(advantage, made) * log(made.probability));
      if (settings_.entropy > 0) objective = objective - scale(sum(made.entropy), settings_.entropy * share);
    }
    if (averages()) observe(found);
  }
  objective.backward();
  return loss.item();
}

Tensor Estimator::baseline(Tensor const& losses, Model const& model, Batch const& batch, Pass const& pass, double label_smoothing) const {
  Index const positions = losses.size(1);
  if (averages()) {
    std::vector<double> known = average_;
    known.resize(static_cast<std::size_t>(positions), 0.0);
    return Tensor::of(known, {1, positions}, losses.dtype());
  }
  if (settings_.baseline == "self_critic") {
    NoGrad const quiet;
    HardChoices expectation;
    expectation.mode = HardChoices::Mode::expectation;
    Pass soft = pass;
    soft.watching.hard_choices = &expectation;
    Tensor const expected = token_losses(model.logits(batch, soft), batch["targets"], label_smoothing);
    return concatenate(std::vector(static_cast<std::size_t>(settings_.samples), expected), 0);
  }
  if (settings_.baseline == "leave_one_out") {
    Tensor const apart = reshape(losses, {settings_.samples, -1, positions});
    Tensor const others = scale(sum(apart, {0}, true) - apart, 1 / static_cast<double>(settings_.samples - 1));
    return reshape(others, {-1, positions});
  }
  return {};
}

void Estimator::observe(Tensor const& losses) {
  std::vector<double> const sums = sum(losses, {0}).to_vector();
  if (observed_.size() < sums.size()) observed_.resize(sums.size(), 0.0);
  for (std::size_t i = 0; i < sums.size(); ++i) observed_[i] += sums[i];
  rows_ += static_cast<double>(losses.size(0));
}

void Estimator::begin_step() {
  observed_.clear();
  rows_ = 0;
}

void Estimator::end_step() {
  average_.resize(std::max(average_.size(), observed_.size()), 0.0);
  for (std::size_t i = 0; i < observed_.size(); ++i) average_[i] = 0.9 * average_[i] + 0.1 * observed_[i] / rows_;
  begin_step();
}

NamedTensors Estimator::state() const {
  if (!averages()) return {};
  return {{average_name, Tensor::of(average_, {static_cast<Index>(average_.size())})}};
}

void Estimator::load_state(NamedTensors const& state) {
  if (!averages()) return;
  auto const found = std::ranges::find(state, average_name, &NamedTensors::value_type::first);
  if (found == state.end()) throw Error(fmt::format("there is no '{}'", average_name));
  average_ = found->second.to_vector();
}

}  // namespace heed
