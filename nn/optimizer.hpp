#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/tensor.hpp"
#include "nn/parameters.hpp"
#include "nn/settings.hpp"

namespace heed {

/// An item of `optimizer.groups`: parameters by name, and their settings.
struct GroupSettings : Settings {
  std::string match;
  std::optional<double> lr, lr_factor, weight_decay;
  bool frozen = false;
  std::optional<Index> unfreeze;
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// Whether a name matches a pattern, in which each * stands for any text, including dots and the empty text.
bool matches(std::string_view pattern, std::string_view name);

/// Whether a parameter belongs to a layer: a number is in its name, and it is no embedding, table of distances or task head's.
bool in_a_layer(std::string_view name);

/// An optimizer's settings for one parameter.
struct Treatment {
  double rate = 1;                        ///< factor on the learning rate
  bool own_rate = false;                  ///< a group gives its rate (`lr`)
  std::optional<double> weight_decay{};   ///< instead of the optimizer's
  double decay_factor = 1;                ///< factor on the weight decay
  std::optional<Index> first_update = 0;  ///< number of the first update (from 0) that changes it; nothing: frozen
};

/// Per parameter, in their order, the treatment of the last group that matches its name (as in .gitignore: general before specific). `lr`:
/// the optimizer's, relative to which a group's own rate is expressed. `layer_decay`: layer-wise learning-rate decay (Howard & Ruder 2018;
/// Clark et al. 2020; Bao et al. 2022): the factor is layer_decay^(L − i) for layer i of L, layer_decay^(L + 1) for embeddings and tables
/// of distances, 1 for what follows the layers; a group's lr_factor multiplies it, a group's lr replaces it. A parameter's layer is the
/// first number in its name. What a parametrization gives (Parameters::rates) multiplies each rate, and divides each decay, so that their
/// product stays.
///
/// Throws Error, which begins with the key (`optimizer.groups.0.match: …`), for a group that matches nothing, whose parameters are all
/// taken by later groups, or whose weight decay applies to none; for layer_decay without layers; and if the first update trains nothing.
std::vector<Treatment> treatments(Parameters const& parameters, std::vector<GroupSettings> const& groups, std::optional<double> layer_decay,
                                  double lr);

/// A parameter under an optimizer.
struct OptimizedParameter {
  std::string name;
  Tensor parameter;
  bool decays;
  std::vector<Tensor> slots = {};  ///< its state, in the order of the slots' names; empty if it is never updated
  Treatment treatment = {};

  /// Its weight decay, where the optimizer's is `usual`.
  double decay(double usual) const { return decays ? treatment.weight_decay.value_or(usual) * treatment.decay_factor : 0; }
  bool trains(Index update) const { return treatment.first_update && *treatment.first_update <= update; }
};

/// Elements [begin, end) of a parameter's arrays; the gradient is defined.
struct ParameterRange {
  Tensor const& gradient;
  double lr, gradient_factor;
  Index begin, end;
  Index number;  ///< number of this update of the parameter, from 1
};

/// A kind of optimizer: its settings, and the rule by which it updates a parameter. `lr` is the schedule's base rate. Groups are common to
/// all kinds and applied by make_optimizer().
struct OptimizerSettings : Settings {
  double lr = 1e-3;
  double weight_decay = 0;
  ListOf<GroupSettings> groups;
  std::optional<double> layer_decay;
  std::vector<Field> fields() final;
  /// The kind's own fields.
  virtual std::vector<Field> own_fields() = 0;
  /// Names of the tensors that are a parameter's state.
  virtual std::vector<std::string> slots(OptimizedParameter const& entry) const = 0;
  /// What update() gets as the gradient of a whole parameter; here the gradient itself. May change the parameter's state.
  virtual Tensor direction(OptimizedParameter&, Tensor const& gradient, double /*gradient_factor*/) const { return gradient; }
  /// Updates a part of a parameter. Called from several threads.
  virtual void update(OptimizedParameter& entry, ParameterRange const& part) const = 0;
};

/// Updates parameters by their gradients. Its state per parameter (momentum, moments) starts at zero; weight decay applies to the
/// parameters that declare it (WeightDecay). Groups may give parameters their own rate and weight decay, or freeze them: for good, without
/// state, or until an update, from which they are trained as if it were the first.
class Optimizer {
 public:
  /// `name`: of the kind, with which the names of the state begin: NAME.SLOT.PARAMETER.
  Optimizer(std::string name, std::shared_ptr<OptimizerSettings const> rule, Parameters const& parameters);
  Optimizer(Optimizer const&) = delete;
  Optimizer& operator=(Optimizer const&) = delete;

  /// One update with learning rate `lr` and gradients gradient_factor · parameter.grad(), which stay; an undefined one counts as zeros.
  void step(double lr, double gradient_factor = 1);
  /// Number of updates so far.
  Index steps() const { return steps_; }
  /// Sets the treatments of the parameters (treatments(), in their order); frozen ones need no gradient from here on
  /// (set_frozen). Throws Error after the first update, or if the number differs from the parameters'.
  void treat(std::vector<Treatment> const& treatments);

  /// Copies of what the next update depends on besides parameters and gradients: "adamw.step" and, per parameter, "adamw.first.NAME", ….
  NamedTensors state() const;
  /// Restores state(), bit by bit; names of others ("ema.…") are ignored. Throws Error naming tensors that are missing, left over, or of
  /// another shape or dtype (joined_messages); then nothing has changed.
  void load_state(NamedTensors const& state);

 private:
  NamedTensors slots() const;
  void freeze();

  std::string name_;
  std::shared_ptr<OptimizerSettings const> rule_;
  std::vector<OptimizedParameter> entries_;
  Index steps_ = 0;
};

using OptimizerKind = KindOf<OptimizerSettings>;
/// `optimizer: {kind: adamw, …}`; adamw with its defaults is the default.
Choice optimizer_choice();
/// The chosen settings, or the optimizer made from them, with its groups. Throws Error if nothing is chosen, or as treatments().
OptimizerSettings const& optimizer_settings(Choice const& choice);
std::unique_ptr<Optimizer> make_optimizer(Choice const& choice, Parameters const& parameters);

/// ‖g‖ of all gradients (frozen parameters have none), the squares summed in double precision, the same for any number of threads.
double gradient_norm(Parameters const& parameters);
/// The factor on gradients that limits their norm: min(1, limit/(norm + 1e-6)).
double clip_factor(double norm, double limit);

/// The exponential moving average of the weights (`train.ema`): after t updates Σ_s decay^(t−s) p_s / Σ_s decay^(t−s), s = 1 … t, p_s the
/// parameters after update s. The initial weights are not included, so that short runs are not biased towards them.
class AverageWeights {
 public:
  /// Throws Error for a decay outside [0, 1).
  AverageWeights(Parameters const& parameters, double decay);

  /// Adds the current parameters; call it after every step of the optimizer. Throws Error while swapped.
  void update();
  /// Exchanges parameters and averages: once before evaluating with the average, once more before training goes on. Before the first update
  /// the average is the parameters themselves.
  void swap();
  bool swapped() const { return swapped_; }

  /// "ema.step" and, per parameter, "ema.average.NAME"; as in Optimizer. Throw Error while swapped.
  NamedTensors state() const;
  void load_state(NamedTensors const& state);

 private:
  void require_unswapped(char const* what) const;

  NamedTensors parameters_;
  NamedTensors averages_;  // in their order
  double decay_;
  Index steps_ = 0;
  bool swapped_ = false;
};

/// While it lives, the parameters hold their average.
class WithAverage {
 public:
  explicit WithAverage(AverageWeights& weights) : weights_(weights) { weights_.swap(); }
  ~WithAverage() { weights_.swap(); }
  WithAverage(WithAverage const&) = delete;
  WithAverage& operator=(WithAverage const&) = delete;

 private:
  AverageWeights& weights_;
};

}  // namespace heed
