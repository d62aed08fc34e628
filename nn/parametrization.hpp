#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/attention/steps.hpp"
#include "nn/parameters.hpp"
#include "nn/settings.hpp"

namespace heed {

/// `model.parametrization:` standard, or the maximal update parametrization μP, `{kind: mup, base: 64}` (Yang et al. 2022, arXiv
/// 2203.03466): how initial values, learning rates, scores and logits depend on the width. In Table 8's form, for Adam and AdamW; r is a
/// matrix's number of inputs in a model of width `base`, divided by its own:
///
///                                               initial standard deviation   learning rate
///   embeddings, biases, norms, other vectors    as in standard               lr
///   matrices of the layers                      √r · standard                r · lr
///   the same with a fixed number of outputs     r · standard                 r · lr          (Table 3; there are no multipliers)
///   output layer, tied or not                   as in standard               lr; logits times base/width
///   scores q·k                                  √d_base/d instead of 1/√d, d_base: a head's d at width base
///
/// A fixed number of inputs has r = 1. Everything equals standard, bit by bit, at width `base`. Sizes given in YAML (mlp_width, key_width,
/// value_width) and numbers of heads are the same at all widths: where heads keep their width and their number grows, key_width must be
/// given. AdamW's decay, too, is independent of the width: λ/r where the rate is r · lr, so that lr · λ stays (as in the authors' package).
/// Adam's eps is not scaled.
struct ParametrizationSettings : Settings {
  std::string kind = "standard";
  std::optional<Index> base;

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  bool from_word(std::string_view word) override;
  std::vector<std::string> short_words() override { return {"standard"}; }
  std::string word() override { return base ? "" : kind; }

  /// base/width, or 1.
  double growth(Index width) const { return base ? static_cast<double>(*base) / static_cast<double>(width) : 1; }
  /// The key of an attention under which μP gives no rule for its scores or weights, and why, "score: …"; nothing: there is a rule.
  std::optional<std::string> unavailable(AttentionSettings const& attention) const;
};

/// Gives the parameters of a model the initial values and rates of μP. `base`: shapes of those of the same model at width `base`.
void parametrize(Parameters& parameters, Parameters const& base);

/// The key of initial values, optimizer or schedule with which μP's rules do not hold, and why, "train.optimizer.kind: …"; or nothing.
std::optional<std::string> contradiction_of_mup(InitSettings const& init, Choice const& optimizer, Choice const& schedule);

}  // namespace heed
