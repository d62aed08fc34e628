#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autograd/tensor.hpp"
#include "nn/settings.hpp"

namespace heed {

struct Pass;

/// Gradient estimators of hard attention: keys of `attention: {read: hard, …}`. Xu et al. 2015, section 4.1, with their defaults except for
/// λ_r, which is 1/10 in their program and 1, where the estimate is unbiased, in their paper.
struct EstimatorSettings {
  std::string estimator = "reinforce";
  std::string baseline = "moving_average";
  Index samples = 1;
  double entropy = 0.002;         ///< λ_e
  double expectation_rate = 0.5;  ///< probability that a batch reads the expectation instead of samples
  double reward_weight = 1;       ///< λ_r
  double temperature = 1;         ///< initial τ
  double temperature_decay = 0;   ///< r: τ e^{−rt} at step t, at least temperature_least (Jang et al. 2017)
  double temperature_least = 0.1;
  std::string evaluate = "argmax";

  /// Their keys beside the others of `attention:`.
  std::vector<Field> fields();
  /// A key that says nothing where it stands, or not what it can: with this read, or with this estimator.
  std::optional<std::string> contradiction_of(std::string const& read) const;
  /// τ after this many updates.
  double temperature_at(Index step) const;
  bool operator==(EstimatorSettings const&) const = default;
  /// Whether all choices are summed over, up to 1024 sequences per pass.
  bool sums_over_choices() const { return estimator == "enumerate" || estimator == "marginal"; }
};

/// The choices of hard attention in one forward pass, layer by layer.
struct HardChoices {
  /// given: by codes, a digit per choice; one: a sequence's code is its choice at every query.
  enum class Mode { sample, expectation, given, one };
  /// The positions whose logits depend on a choice at query i: i alone, i and later ones, or all.
  enum class Reach { position, later, sequence };
  /// The choices of one call, per sequence, head and query.
  struct Made {
    Tensor probability;  ///< a_J, [B, H, n]; 1 for a query without visible keys
    Tensor entropy;      ///< −Σ_j a_j log a_j, [B, H, n]
    Reach reach;
  };

  Mode mode = Mode::sample;
  std::vector<Made> made;
  /// For Mode::given: a number per sequence, whose mixed-radix digits (a digit per choice, with the number of available keys as radix) are
  /// the choices; the quotient after the choices made so far. For Mode::one: the choice.
  std::vector<Index> codes;
  double combinations = 1;  ///< the product of the radices so far, the number of codes; for Mode::one, the number of keys
};

/// The number of choices in a pass so far; sets the reach of those from number `first` on.
std::size_t choices_made(Pass const& pass);
void set_reach(Pass const& pass, std::size_t first, HardChoices::Reach reach);

/// f(inputs, pass); with pass.training.recompute it is run again for its gradient instead of keeping intermediate results (see
/// checkpoint()). The choices made in it are returned beside its result, so that their probabilities have gradients. The result is [B, n,
/// …], and the n are also the queries of the choices. Throws Error for given choices (enumerate, marginal).
Tensor recomputed_block(std::function<Tensor(std::vector<Tensor> const& inputs, Pass const& pass)> const& f,
                        std::vector<Tensor> const& inputs, Pass const& pass);

}  // namespace heed
