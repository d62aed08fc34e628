// Queries and keys rotated by their position, so that q_i·k_j depends on i − j alone

#include <cmath>

#include "nn/position.hpp"

namespace heed {

namespace {

/// For contexts longer than trained: `linear` divides positions by the factor (Chen et al. 2023); `ntk`, NTK-aware scaling, lowers the low
/// frequencies by a larger base, base · factor^{d/(d−2)}, and keeps the highest (bloc97 2023).
struct ScalingSettings : Settings {
  std::string kind = "none";
  double factor = 1;

  std::vector<Field> fields() override {
    return {
        field(&kind, "kind", "linear: position interpolation; ntk: NTK-aware scaling; none: no scaling").one_of({"none", "linear", "ntk"}),
        field(&factor, "factor", "length of the new contexts divided by the trained length").in(1, 1e6)};
  }
  std::optional<std::string> contradiction() override {
    if (kind == "none" && factor != 1) return "factor: applies only to linear and ntk";
    return std::nullopt;
  }
};

struct RotarySettings : Settings {
  double base = 10000;
  ScalingSettings scaling;

  std::vector<Field> fields() override {
    return {field(&base, "base", "pair i is rotated by the angle p/base^{2i/d}").between(1, 1e12),
            field(&scaling, "scaling", "scaling for contexts longer than trained")};
  }
};

struct Rotation : AttentionPosition {
  Rotation(RotarySettings const& settings, Index of_head) : width(of_head) {
    auto const d = static_cast<double>(of_head);
    frequencies.base = settings.base;
    if (settings.scaling.kind == "linear") frequencies.stretch = settings.scaling.factor;
    if (settings.scaling.kind == "ntk" && of_head > 2) frequencies.base *= std::pow(settings.scaling.factor, d / (d - 2));
  }
  Tensor rotate(Tensor const& x, Index offset) const override { return rotary(x, x.size(2) / width, offset, frequencies); }

  Index width;
  RotaryFrequencies frequencies;
};

struct Rotary : Position {
  Rotary(Scope const&, PositionShape const&, Settings const& given) : settings(dynamic_cast<RotarySettings const&>(given)) {}
  std::unique_ptr<AttentionPosition> in_attention(Scope const&, Index, Index width) const override {
    return std::make_unique<Rotation>(settings, width);
  }

  RotarySettings settings;
};

Declared<PositionKind> const rotary_position{{"rotary", "pairs of q_p and k_p rotated by p/base^{2i/d}, base = 10000", "Su et al. 2021",
                                              "defined", makes<Rotary>, PositionActsOn::queries_and_keys, false,
                                              []() -> std::shared_ptr<Settings> { return std::make_shared<RotarySettings>(); }}};

}  // namespace

}  // namespace heed
