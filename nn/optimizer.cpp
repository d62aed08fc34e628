#include "nn/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "autograd/kernels/update.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

/// Calls body(i, begin, end) for stretches of arrays i of the given lengths, which are taken as one long row and cut among the threads.
template <class Body>
void for_stretches(std::vector<Index> const& lengths, double cost, Body const& body) {
  Index total = 0;
  for (Index const length : lengths) total += length;
  parallel_for(
      total, cost,
      [&](Index begin, Index end) {
        Index start = 0;
        for (std::size_t i = 0; i < lengths.size() && start < end; start += lengths[i++]) {
          Index const from = std::max(begin - start, Index{0});
          Index const to = std::min(end - start, lengths[i]);
          if (from < to) body(i, from, to);
        }
      },
      64);
}

/// NAME.step and copies of the tensors.
NamedTensors packed(std::string const& name, Index steps, NamedTensors const& tensors) {
  NamedTensors state{{name + ".step", Tensor::of(std::vector<Index>{steps}, {})}};
  for (auto const& [key, value] : tensors) state.emplace_back(key, value.clone());
  return state;
}

/// The way back: fills `tensors` and returns the number of steps.
Index unpack(std::string const& name, NamedTensors const& state, NamedTensors tensors) {
  std::map<std::string, Tensor> given;
  for (auto const& [key, value] : state)
    if (key.starts_with(name + ".")) given.emplace(key, value);
  std::vector<std::string> errors;
  auto const take = [&](std::string const& key, Shape const& shape, DType dtype) {
    auto const found = given.extract(key);
    if (found.empty()) {
      errors.push_back(fmt::format("'{}' is missing", key));
      return Tensor();
    }
    Tensor const& value = found.mapped();
    if (value.shape() != shape || value.dtype() != dtype)
      errors.push_back(fmt::format("'{}' is {} {}, wants {} {}", key, to_string(value.dtype()), to_string(value.shape()), to_string(dtype),
                                   to_string(shape)));
    return value;
  };
  Tensor const steps = take(name + ".step", {}, DType::int64);
  std::vector<Tensor> values;
  for (auto const& [key, tensor] : tensors) values.push_back(take(key, tensor.shape(), tensor.dtype()));
  for (auto const& [key, value] : given) errors.push_back(fmt::format("'{}' {} belongs to no parameter", key, to_string(value.shape())));
  if (errors.empty() && steps.data<std::int64_t>()[0] < 0) errors.push_back(fmt::format("'{}.step' is negative", name));
  if (!errors.empty()) throw Error(fmt::format("state of {}: {}", name, joined_messages(errors)));
  for (std::size_t i = 0; i < tensors.size(); ++i) copy_elements(values[i], tensors[i].second);
  return steps.data<std::int64_t>()[0];
}

}  // namespace

Optimizer::Optimizer(std::string name, std::shared_ptr<OptimizerSettings const> rule, Parameters const& parameters)
    : name_(std::move(name)), rule_(std::move(rule)) {
  for (auto const& each : parameters.all()) {
    auto const& parameter = each.second;
    OptimizedParameter& entry = entries_.emplace_back(OptimizedParameter{each.first, parameter, parameters.decays(each.first)});
    entry.slots = mapped(rule_->slots(entry), [&](auto const&) { return Tensor::zeros(parameter.shape(), parameter.dtype()); });
  }
}

void Optimizer::treat(std::vector<Treatment> const& treatments) {
  if (steps_ > 0) throw Error(fmt::format("{}: parameters are grouped before the first update, not after {}", name_, steps_));
  if (treatments.size() != entries_.size())
    throw Error(fmt::format("{}: {} treatments of {} parameters", name_, treatments.size(), entries_.size()));
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].treatment = treatments[i];
    if (!treatments[i].first_update) entries_[i].slots.clear();
  }
  freeze();
}

/// Freezes and thaws by groups as the next update has it.
void Optimizer::freeze() {
  for (OptimizedParameter& entry : entries_) {
    bool const frozen = !entry.trains(steps_);
    if (entry.treatment.first_update != 0 && frozen != entry.parameter.frozen()) entry.parameter.set_frozen(frozen);
  }
}

void Optimizer::step(double lr, double gradient_factor) {
  std::vector<OptimizedParameter*> trained;
  std::vector<Tensor> gradients;
  for (OptimizedParameter& entry : entries_) {
    if (!entry.trains(steps_)) continue;
    trained.push_back(&entry);
    Tensor gradient = entry.parameter.grad();
    if (!gradient.defined()) gradient = Tensor::zeros(entry.parameter.shape(), entry.parameter.dtype());
    gradients.push_back(rule_->direction(entry, gradient, gradient_factor));
  }
  ++steps_;
  for_stretches(mapped(gradients, &Tensor::elements), 0.3, [&](std::size_t i, Index begin, Index end) {
    Treatment const& treatment = trained[i]->treatment;
    rule_->update(*trained[i], {gradients[i], lr * treatment.rate, gradient_factor, begin, end, steps_ - *treatment.first_update});
  });
  freeze();
}

NamedTensors Optimizer::slots() const {
  NamedTensors tensors;
  for (OptimizedParameter const& entry : entries_) {
    auto const names = rule_->slots(entry);
    for (std::size_t i = 0; i < entry.slots.size(); ++i)
      tensors.emplace_back(fmt::format("{}.{}.{}", name_, names[i], entry.name), entry.slots[i]);
  }
  return tensors;
}

NamedTensors Optimizer::state() const { return packed(name_, steps_, slots()); }

void Optimizer::load_state(NamedTensors const& state) {
  steps_ = unpack(name_, state, slots());
  freeze();
}

Choice optimizer_choice() { return choice_of<OptimizerKind>("adamw"); }

OptimizerSettings const& optimizer_settings(Choice const& choice) { return chosen_settings<OptimizerSettings>(choice, "optimizer"); }

std::unique_ptr<Optimizer> make_optimizer(Choice const& choice, Parameters const& parameters) {
  OptimizerSettings const& settings = optimizer_settings(choice);
  auto made = std::make_unique<Optimizer>(choice.kind, std::shared_ptr<OptimizerSettings const>(choice.settings, &settings), parameters);
  if (!settings.groups.items.empty() || settings.layer_decay || !parameters.rates().empty())
    made->treat(treatments(parameters, settings.groups.items, settings.layer_decay, settings.lr));
  return made;
}

std::vector<Field> OptimizerSettings::fields() {
  return extended(own_fields(), {field(&layer_decay, "layer_decay",
                                       "learning rate of each layer divided by that of the next layer (Howard & Ruder 2018); none: 1")
                                     .in(1e-6, 1),
                                 field(&groups, "groups", "parameter groups with their own learning rate or weight decay, or frozen")});
}

double gradient_norm(Parameters const& parameters) {
  // Blocks of fixed size, so that the order of the sum is the same for any number of threads.
  constexpr Index block = 4096;
  struct UpdatePiece {
    Tensor gradient;
    Index begin, end;
    double squares;
  };
  std::vector<UpdatePiece> pieces;
  for (auto const& [name, parameter] : parameters.all()) {
    Tensor const gradient = parameter.grad();
    if (!gradient.defined()) continue;
    for (Index at = 0; at < gradient.elements(); at += block)
      pieces.push_back({gradient, at, std::min(at + block, gradient.elements()), 0});
  }
  parallel_for(static_cast<Index>(pieces.size()), 0.15 * block, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      UpdatePiece& piece = heed::at(pieces, i);
      piece.squares = kernels::sum_of_squares(piece.gradient, {piece.begin, piece.end});
    }
  });
  double total = 0;
  for (UpdatePiece const& piece : pieces) total += piece.squares;
  return std::sqrt(total);
}

double clip_factor(double norm, double limit) { return std::min(1.0, limit / (norm + 1e-6)); }

AverageWeights::AverageWeights(Parameters const& parameters, double decay) : parameters_(parameters.all()), decay_(decay) {
  if (!(decay >= 0 && decay < 1)) throw Error(fmt::format("ema: a decay of {} is not in [0, 1)", decay));
  for (auto const& [name, parameter] : parameters_) averages_.emplace_back("ema.average." + name, parameter.clone());
}

void AverageWeights::require_unswapped(char const* what) const {
  if (swapped_) throw Error(fmt::format("ema: {} while the parameters hold their average", what));
}

void AverageWeights::update() {
  require_unswapped("update");
  ++steps_;
  double const weight = (1 - decay_) / (1 - std::pow(decay_, static_cast<double>(steps_)));
  auto const lengths = mapped(averages_, [](auto const& each) { return each.second.elements(); });
  for_stretches(lengths, 0.2, [&](std::size_t i, Index begin, Index end) {
    if (steps_ > 1 && parameters_[i].second.frozen()) return;  // the same for ever: rounding would move it
    kernels::average_update(averages_[i].second, parameters_[i].second, weight, {begin, end});
  });
}

void AverageWeights::swap() {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    Tensor& parameter = parameters_[i].second;
    Tensor const kept = parameter.clone();
    copy_elements(averages_[i].second, parameter);
    copy_elements(kept, averages_[i].second);
  }
  swapped_ = !swapped_;
}

NamedTensors AverageWeights::state() const {
  require_unswapped("state");
  return packed("ema", steps_, averages_);
}

void AverageWeights::load_state(NamedTensors const& state) {
  require_unswapped("load_state");
  steps_ = unpack("ema", state, averages_);
}

}  // namespace heed
