#include "nn/attention/linear/parts.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

std::vector<Field> DecayStart::fields() {
  return {field(&rate, "rate", "bounds of e^rate, drawn uniformly").above(0),
          field(&step, "step", "bounds of softplus(bias), whose logarithm is drawn uniformly").above(0)};
}

std::optional<std::string> DecayStart::contradiction() {
  for (auto const& [name, bounds] : {std::pair("rate", &rate), std::pair("step", &step)})
    if (bounds->size() != 2 || bounds->front() > bounds->back()) return fmt::format("{}: wants two bounds, [low, high]", name);
  return std::nullopt;
}

std::vector<Field> LinearSettings::fields() {
  return {
      field(&feature, "feature", "linear attention: φ of queries and keys").one_of(Registry<FeatureKind>::names()),
      field(&decay, "decay", "linear attention: decay of the state").one_of(Registry<DecayKind>::names()),
      field(&write, "write", "linear attention: what is written into the state").one_of(Registry<WriteKind>::names()),
      field(&normaliser, "normaliser", "sum: contexts divided by q·z + 1e-6, z the decayed sum of keys").one_of({"none", "sum"}),
      field(&activation, "activation", "linear attention: of queries, keys and values").one_of({"none", "silu"}),
      field(&output_norm, "output_norm", "RMS norm of each head's context (head), or of all heads after the gate (whole)")
          .one_of({"none", "head", "whole"}),
      field(&output_gate, "output_gate", "contexts times a function of W x").one_of({"none", "silu", "sigmoid"}),
      field(&groups, "groups", "heads of queries and keys, each shared by heads / groups; default: heads").in(1, 1000),
      field(&rank, "rank", "inner width of the decay 'channel'; default: a key's width").in(1, 65536),
      field(&range, "range", "of the write 'delta': strengths in (0, range); 2: eigenvalues down to −1 (Grazzi et al. 2025)").in(1, 2),
      field(&steps, "steps", "keys and values written per token (DeltaProduct: Siems et al. 2025)").in(1, 16),
      field(&skip, "skip", "contexts plus a learned multiple of the value, per head"),
      field(&start, "start", "where the decay starts"),
  };
}

std::vector<std::string> LinearSettings::changed() const {
  LinearSettings own = *this, usual;
  return differing_fields(own.fields(), usual.fields());
}

std::optional<std::string> LinearSettings::contradiction() const {
  auto const& of_decay = Registry<DecayKind>::at(decay, "decay: there is no");
  auto const& of_write = Registry<WriteKind>::at(write, "write: there is no");
  if (of_write.has_steps && !of_decay.has_steps)
    return fmt::format("write: '{}' writes the steps of a decay with one number per head, which the decay '{}' is not", write, decay);
  if (of_write.has_steps && steps > 1) return fmt::format("steps: the write '{}' has one step per token, not {}", write, steps);
  if (skip && steps > 1) return fmt::format("skip: a token has {} values, of which none can skip the state", steps);
  for (auto const& key : changed()) {
    std::vector<std::string> owners;
    auto const has = [&](auto const& kind) { return std::ranges::find(kind.keys, key) != kind.keys.end(); };
    for (auto const& kind : Registry<DecayKind>::all())
      if (has(kind)) owners.push_back(fmt::format("the decay '{}'", kind.name));
    for (auto const& kind : Registry<WriteKind>::all())
      if (has(kind)) owners.push_back(fmt::format("the write '{}'", kind.name));
    if (!owners.empty() && !has(of_decay) && !has(of_write)) return fmt::format("{}: applies only to {}", key, fmt::join(owners, " and "));
  }
  return std::nullopt;
}

Tensor times_per_head(Tensor const& x, Tensor const& by) {
  Tensor const apart = reshape(x, {x.size(0), x.size(1), by.size(2), x.size(2) / by.size(2)});
  return reshape(apart * unsqueeze(by, 3), {x.size(0), x.size(1), x.size(2)});
}

std::vector<LinearVariant> const& linear_variants() {
  auto const of = [](std::string feature, std::string decay, std::string write, std::string output_norm, std::string output_gate) {
    LinearSettings settings;
    settings.feature = std::move(feature), settings.decay = std::move(decay), settings.write = std::move(write);
    settings.output_norm = std::move(output_norm), settings.output_gate = std::move(output_gate);
    return settings;
  };
  static std::vector<LinearVariant> const all = [&of] {
    std::vector<LinearVariant> variants{
        {"linear", "Katharopoulos et al. 2020", of("elu1", "none", "add", "none", "none")},
        {"retnet", "Sun et al. 2023, with values as wide as keys", of("identity", "fixed", "add", "head", "silu")},
        {"gla", "Yang et al. 2024, with a learned rate", of("identity", "channel", "add", "head", "silu")},
        {"mamba2", "Dao & Gu 2024", of("identity", "head", "step", "whole", "silu"), 4, "none"},
        {"deltanet", "Schlag et al. 2021, Yang et al. 2024", of("l2", "none", "delta", "head", "none"), 4},
        {"gated_deltanet", "Yang et al. 2025", of("l2", "head", "delta", "head", "silu"), 4},
        {"kda", "Kimi Linear 2025", of("l2", "channel", "delta", "head", "sigmoid"), 4}};
    variants[0].settings.normaliser = "sum";
    variants[2].settings.rank = 16;
    variants[2].settings.start.rate = {1.0 / 16, 1.0 / 16};
    variants[3].settings.groups = 1, variants[3].settings.skip = true;
    for (std::size_t i = 3; i < variants.size(); ++i) variants[i].settings.activation = "silu";
    return variants;
  }();
  return all;
}

}  // namespace heed
