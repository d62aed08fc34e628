#pragma once

#include <utility>
#include <vector>

#include "nn/model.hpp"

namespace heed {

/// −Σ_c t_c log softmax(logits)_c at every place, as cross_entropy() before its mean; 0 where a target is −1. logits [B, T, V] → [B, T].
Tensor token_losses(Tensor const& logits, Tensor const& targets, double label_smoothing = 0);

/// The gradient of a model's expected loss, where it chooses keys at random (`attention: {read: hard, …}`): a stochastic computation graph
/// (Schulman et al. 2015; Xu et al. 2015). With L_t the loss at place t of a sequence, N the step's targets and a_J the probability of a
/// choice J at query i,
///
///   reinforce    (1/K) Σ_k [Σ_t ∇L_t + λ_r Σ_J (R_J − b_J) ∇log a_J − λ_e Σ_J ∇H(a)] / N
///                R_J is the loss that the choice can still touch, Σ L_t over the places that it reaches: i alone for the last layer of a
///                stack; below, every t ≥ i where the model is causal, else the whole sequence.
///   enumerate    ∇ Σ_choices p(choices) Σ_t L_t / N, exact
///   marginal     −∇ Σ_t log Σ_J a_J e^{−L_t(J)} / N, exact: of the probability of the words themselves, which the expected loss bounds
///                from above (Deng et al. 2018); where one head looks, and a choice reaches its own place alone
///
/// and the baseline b_J, which never depends on the choice J itself, so that E[b ∇log a_J] = 0, is the sum over the same places of
///
///   none            0
///   moving_average  the place's loss over the steps before: b ← 0.9 b + 0.1 · (mean over the step), from 0
///   self_critic     the L_t of a pass that reads the expectation
///   leave_one_out   the mean L_t of the other K − 1 samples (Kool et al. 2019)
///
/// A sample is a whole pass: K samples are K independent passes over the batch, so that the others' losses know nothing of any choice of
/// this one, in whichever layer. (K draws inside one read would share what follows, and leaving one out would not be unbiased.)
/// With probability `expectation_rate` a batch reads expectations instead and has the plain gradient: Xu et al.'s, lower in variance and
/// biased, as λ_r ≠ 1 is and the entropy bonus is. straight_through and gumbel have plain gradients too.
class Estimator {
 public:
  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

  explicit Estimator(EstimatorSettings const& settings) : settings_(settings) {}

  /// Throws Error if the choices are too many to enumerate, more than 2¹⁶ a sequence, or are not such that marginal sums over.
  void check(Model const& model, Batch const& batch) const;

  /// Adds to the parameters' gradients this micro-batch's part of a step with `targets` targets in all; returns its part of the mean
  /// loss: of the choices made, expected (enumerate), or of the words (marginal).
  double accumulate(Model const& model, Batch const& batch, Pass const& pass, double label_smoothing, double targets);
  /// Ends a step: the moving average learns its losses. begin_step() forgets those of a step that was not finished.
  void begin_step();
  void end_step();

  /// The moving average, if there is one, for a checkpoint.
  NamedTensors state() const;
  /// Throws Error if it is not there.
  void load_state(NamedTensors const& state);

 private:
  bool averages() const { return settings_.estimator == "reinforce" && settings_.baseline == "moving_average"; }
  double combinations(Model const& model, Batch const& batch) const;
  double enumerate(Model const& model, Batch const& batch, Pass pass, double label_smoothing, double targets) const;
  std::int64_t keys_of_one_look(Model const& model, Batch const& batch) const;
  double marginal(Model const& model, Batch const& batch, Pass pass, double label_smoothing, double targets) const;
  Tensor baseline(Tensor const& losses, Model const& model, Batch const& batch, Pass const& pass, double label_smoothing) const;
  void observe(Tensor const& losses);

  EstimatorSettings settings_;
  std::vector<double> average_;   ///< b of each place
  std::vector<double> observed_;  ///< sums of L_t in this step
  double rows_ = 0;               ///< how many
};

}  // namespace heed
