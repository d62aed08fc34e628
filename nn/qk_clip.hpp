#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nn/parameters.hpp"
#include "nn/pass.hpp"
#include "nn/settings.hpp"

namespace heed {

/// QK-clip (Kimi K2, arXiv 2507.20534, section 2.1), `train.qk_clip: τ`. S_max of a head is its largest score e_ij over all queries, keys
/// that they see, and sequences of a step. After the update, where S_max > τ, the head's rows of W_q and W_k, and of their biases, are
/// multiplied by √γ, γ = τ/S_max. Keys that several heads share stay, and the queries of each of these heads are multiplied by its γ, as
/// the paper does with the rotary keys that its heads share. With the weights before the update every score would now be at most τ.
///
/// Frozen parameters stay as they are.
class QueryKeyClip {
 public:
  /// `parameters`: of a model for which contradiction_of_qk_clip() gives nothing. They are found by the names of the layers.
  QueryKeyClip(Parameters const& parameters, double threshold) : parameters_(parameters), threshold_(threshold) {}
  QueryKeyClip(QueryKeyClip const&) = delete;
  QueryKeyClip& operator=(QueryKeyClip const&) = delete;

  /// The observer of a step's passes, which also passes everything on to `next`, unless it is null. Begins a step.
  Observer const* watch(Observer const* next);
  /// S_max so far in this step, of all heads of all layers, layers in the order of their names.
  std::vector<double> largest() const;
  /// Clips; `largest`: as largest() gives it, over all passes of the step.
  void clip(std::vector<double> const& largest) const;

 private:
  void note(std::string const& layer, Tensor const& rows);

  Parameters const& parameters_;
  double threshold_;
  std::map<std::string, std::vector<double>> largest_;  ///< by layer, S_max of its heads
  std::optional<AttentionRecorder> recorder_;
  Observer observer_;
};

/// Why QK-clip does not apply to a model, "train.qk_clip: …": its scores are not bilinear in W_q and W_k; nothing: it applies.
std::optional<std::string> contradiction_of_qk_clip(Choice const& model);

}  // namespace heed
