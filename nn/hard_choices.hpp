#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/tensor.hpp"

namespace heed {

struct Pass;

/// How the gradient through a random choice of a key is estimated: keys of `attention: {read: hard, …}`. Xu et al. 2015, section 4.1.
/// The defaults are theirs, but for λ_r, which is 1/10 in their program and 1, where the estimate is unbiased, in their paper.
struct EstimatorSettings {
  std::string estimator = "reinforce";
  std::string baseline = "moving_average";
  std::int64_t samples = 1;
  double entropy = 0.002;         ///< λ_e
  double expectation_rate = 0.5;  ///< the probability that a batch reads the expectation instead of samples
  double reward_weight = 1;       ///< λ_r
  double temperature = 1;         ///< τ of the first step
  double temperature_decay = 0;   ///< r: at step t, τ e^{−rt}, but not below temperature_least (Jang et al. 2017)
  double temperature_least = 0.1;
  std::string evaluate = "argmax";

  /// τ after so many updates.
  double temperature_at(std::int64_t step) const;
  bool operator==(EstimatorSettings const&) const = default;
  /// Whether the choices themselves carry a gradient, for which their probabilities must be known.
  bool scores_choices() const { return estimator == "reinforce" || sums_over_choices(); }
  /// Whether every choice is made, up to 1024 rows in a pass.
  bool sums_over_choices() const { return estimator == "enumerate" || estimator == "marginal"; }
};

/// What the hard reads of one forward pass have chosen, layer by layer.
struct HardChoices {
  /// given: by codes, a digit a choice; one: a sequence's code is its choice at every query.
  enum class Mode { sample, expectation, given, one };
  /// The places whose logits can change with a choice at query i: i alone, i and those after it, or all.
  enum class Reach { place, later, sequence };
  /// One choice a sequence, head and query.
  struct Made {
    Tensor probability;  ///< a_J, [B, H, n]; 1 for a query that sees no key
    Tensor entropy;      ///< −Σ_j a_j log a_j, [B, H, n]
    Reach reach;
  };

  Mode mode = Mode::sample;
  std::vector<Made> made;
  /// Of Mode::given: one number a sequence, whose mixed-radix digits (a digit a choice, of as many values as there are keys to choose from)
  /// are the choices; what is left of it after the choices made. Of Mode::one: the choice.
  std::vector<std::int64_t> codes;
  double combinations = 1;  ///< the product of the radices so far: how many codes there are; of Mode::one, how many keys
};

/// How many choices a pass has made so far; what those from number `first` on can touch.
std::size_t choices_made(Pass const& pass);
void set_reach(Pass const& pass, std::size_t first, HardChoices::Reach reach);

/// f(inputs, pass); with pass.recompute run again for its gradient instead of keeping what is between (see checkpoint()), together with
/// the choices made in it: these leave it beside its result, so that their probabilities have gradients. The result is [B, n, …], and the n
/// are also the queries of the choices. Throws Error for choices that are given (enumerate, marginal).
Tensor recomputed(std::function<Tensor(std::vector<Tensor> const& inputs, Pass const& pass)> const& f, std::vector<Tensor> const& inputs,
                  Pass const& pass);

}  // namespace heed
