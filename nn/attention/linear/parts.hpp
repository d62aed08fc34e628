#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/attention/linear_attention.hpp"
#include "autograd/registry.hpp"
#include "nn/parameters.hpp"
#include "nn/settings.hpp"

/// Linear attention = feature → decay → write. A variant is a choice for each; a choice (kinds.cpp, or any file) declares itself and so is
/// known to YAML, to `heed list attention` and to the tests.
namespace heed {

/// Where the parameters of a decay −e^rate · softplus(…) start: e^rate and softplus(bias) are drawn between these bounds, the first
/// uniformly, the second by its logarithm (Gu & Dao 2024).
struct DecayStart : Settings {
  std::vector<double> rate{1, 16}, step{0.001, 0.1};
  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// Keys of linear attention, on one level with those of `attention:`.
struct LinearSettings {
  std::string feature = "identity", decay = "none", write = "add";
  std::string normaliser = "none";   ///< sum: contexts divided by q̂·z_t + 1e-6, z_t = e^{g_t} z_{t−1} + k̂_t
  std::string activation = "none";   ///< silu: of queries, keys and values, before the position
  std::string output_norm = "none";  ///< head: RMS norm of each head's context; whole: of all heads, after the gate
  std::string output_gate = "none";  ///< contexts times silu or sigmoid of W x
  std::optional<Index> groups;       ///< G heads of queries and keys, each shared by H/G heads; none: H
  std::optional<Index> rank;         ///< of decay `channel`; none: d
  double range = 1;                  ///< of write `delta`: β = range · sigmoid(…)
  Index steps = 1;                   ///< keys and values written per token (Siems et al. 2025)
  bool skip = false;                 ///< adds skip_h v_t
  DecayStart start;

  std::vector<Field> fields();
  /// The keys that differ from their defaults.
  std::vector<std::string> changed() const;
  /// As Settings::contradiction().
  std::optional<std::string> contradiction() const;
};

/// φ, applied to each head's queries and keys.
struct FeatureKind {
  std::string name, formula, paper;
  Tensor (*apply)(Tensor const& x);  ///< of the last axis
};

/// Sizes that a decay's or a write's parameters depend on.
struct LinearShape {
  Index width;  ///< of the model
  Index heads;
  Index key_width;  ///< d
};

/// e^{g_t}, by which the state is multiplied before token t is written.
class StateDecay {
 public:
  virtual ~StateDecay() = default;
  /// Sets in.log_decay from x [B, T, width]; returns the step sizes Δ [B, T, H] of a decay that has one number per head, else undefined.
  virtual Tensor fill(LinearInputs& /*in*/, Tensor const& /*x*/) const { return {}; }
};

/// What is written into the state for a value.
class StateWrite {
 public:
  virtual ~StateWrite() = default;
  /// Replaces in.value [B, T, n·H·e] by what is written, and sets in.erase; `step`: StateDecay::fill()'s result.
  virtual void fill(LinearInputs& /*in*/, Tensor const& /*x*/, Tensor const& /*step*/) const {}
};

/// A decay or a write, declared beside its definition.
template <class Part>
struct LinearKind {
  std::string name, formula, paper;
  std::function<std::unique_ptr<Part>(Scope const& scope, LinearSettings const& settings, LinearShape const& shape)> make;
  std::vector<std::string> keys = {};  ///< of LinearSettings, which no other kind reads unless it names them too
  bool has_steps = false;              ///< of a decay: gives the step sizes; of a write: needs them
};
using DecayKind = LinearKind<StateDecay>;
using WriteKind = LinearKind<StateWrite>;

/// x [B, T, H·e] times a number per head, by [B, T, H].
Tensor times_per_head(Tensor const& x, Tensor const& by);

/// A variant: its keys, and those that softmax attention has too.
struct LinearVariant {
  std::string name, paper;
  LinearSettings settings;
  std::optional<Index> convolution = {};
  std::string scale = "rsqrt";
};
std::vector<LinearVariant> const& linear_variants();

}  // namespace heed
