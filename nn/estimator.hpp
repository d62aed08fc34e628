#pragma once

#include <vector>

#include "nn/model.hpp"

namespace heed {

/// Per position −Σ_c t_c log softmax(logits)_c, as in cross_entropy() before its mean; 0 where a target is −1. logits [B, T, V] → [B, T].
Tensor token_losses(Tensor const& logits, Tensor const& targets, double label_smoothing = 0);

/// The gradient of the expected loss of a model that chooses keys at random (`attention: {read: hard, …}`): a stochastic computation graph
/// (Schulman et al. 2015; Xu et al. 2015). With L_t the loss at position t of a sequence, N the step's targets and a_J the probability of a
/// choice J at query i,
///
///   reinforce    (1/K) Σ_k [Σ_t ∇L_t + λ_r Σ_J (R_J − b_J) ∇log a_J − λ_e Σ_J ∇H(a)] / N
///                R_J is the loss that the choice can affect, Σ L_t over its positions: i alone for the last layer of a
///                stack; below, every t ≥ i if the model is causal, else the whole sequence.
///   enumerate    ∇ Σ_choices p(choices) Σ_t L_t / N, exact
///   marginal     −∇ Σ_t log Σ_J a_J e^{−L_t(J)} / N, exact: the likelihood of the words themselves, which the expected loss bounds
///                from above (Deng et al. 2018); for one head whose choice affects one output token only
///
/// The baseline b_J does not depend on the choice J, so that E[b ∇log a_J] = 0; it is the sum over the same positions of
///
///   none            0
///   moving_average  the position's loss in earlier steps: b ← 0.9 b + 0.1 · (mean over the step), from 0
///   self_critic     the L_t of a pass that reads the expectation
///   leave_one_out   the mean L_t of the other K − 1 samples (Kool et al. 2019)
///
/// A sample is a whole pass: K samples are K independent passes over the batch, so that the losses of the others are independent of this
/// sample's choices in every layer. (K draws inside one read would share the later layers, and leave-one-out would be biased.) With
/// probability `expectation_rate` a batch reads expectations and has the plain gradient, as in Xu et al.: lower variance but biased, as are
/// λ_r ≠ 1 and the entropy bonus. straight_through and gumbel use plain gradients.
class Estimator {
 public:
  explicit Estimator(EstimatorSettings const& settings) : settings_(settings) {}

  /// Throws Error if there are too many choices to enumerate, more than 2¹⁶ a sequence, or if marginal does not apply to them.
  void check(Model const& model, Batch const& batch) const;

  /// Adds this micro-batch's share of a step with `targets` targets in all to the parameters' gradients; returns its share of the mean
  /// loss: of the choices made, expected (enumerate), or of the words (marginal).
  double accumulate(Model const& model, Batch const& batch, Pass const& pass, double label_smoothing, double targets);
  /// Ends a step by updating the moving average. begin_step() discards an unfinished step.
  void begin_step();
  void end_step();

  /// The moving average, if any, for a checkpoint.
  NamedTensors state() const;
  /// Throws Error if it is not there.
  void load_state(NamedTensors const& state);

 private:
  bool averages() const { return settings_.estimator == "reinforce" && settings_.baseline == "moving_average"; }
  Tensor baseline(Tensor const& losses, Model const& model, Batch const& batch, Pass const& pass, double label_smoothing) const;
  void observe(Tensor const& losses);

  EstimatorSettings settings_;
  std::vector<double> average_;   ///< b per position
  std::vector<double> observed_;  ///< sums of L_t in this step
  double rows_ = 0;               ///< their number
};

}  // namespace heed
