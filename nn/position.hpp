#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "autograd/attention/fused_attention.hpp"
#include "autograd/registry.hpp"
#include "nn/parameters.hpp"
#include "nn/settings.hpp"

namespace heed {

/// A position's part in one attention layer.
class AttentionPosition {
 public:
  virtual ~AttentionPosition() = default;
  /// Rotates queries or keys [B, T, ·], of any number of heads, whose first token is at position `offset`.
  virtual Tensor rotate(Tensor const& x, Index /*offset*/) const { return x; }
  /// A bias on the scores by distance: [H, n + m − 1] for relative_bias(); undefined: none.
  virtual Tensor relative(Index /*queries*/, Index /*keys*/, Visibility const& /*visibility*/) const { return {}; }
  /// A bias on the scores of query [B, n, H·d] (rotated) by clipped distance: [B, n, H, 2c + 1] for near_bias(); undefined: none.
  virtual Tensor near(Tensor const& /*query*/, Index /*heads*/) const { return {}; }
  /// Whether relative() and near() give the whole bias for this many queries, as the fused kernels need.
  virtual bool is_by_distance(Index /*queries*/, Visibility const& /*visibility*/) const { return true; }
  /// A bias on the scores of query [B, H, n, d] (rotated) and `keys` keys from position 0: [B or 1, H, n, keys]; undefined: none.
  virtual Tensor bias(Tensor const& query, Index keys, Visibility const& visibility) const {
    Tensor const by_distance = relative(query.size(2), keys, visibility), by_query = near(merge_heads(query), query.size(1));
    if (by_query.defined()) return near_bias(by_query, visibility.offset, keys);
    return by_distance.defined() ? relative_bias(by_distance, query.size(2), keys) : Tensor();
  }
  /// Values that change sign where bias() is not smooth in its parameters, as Score::kinks; undefined: it is smooth.
  virtual Tensor kinks(Index /*queries*/, Index /*keys*/, Visibility const& /*visibility*/) const { return {}; }
};

/// A positional encoding. Each kind is one short file under positions/, which declares itself.
class Position {
 public:
  virtual ~Position() = default;
  /// Adds this kind's embeddings to x [B, T, width], whose first token is at position `offset`.
  virtual Tensor embed(Tensor const& x, Index /*offset*/) const { return x; }
  /// The longest sequence that it supports; nothing: any.
  virtual std::optional<Index> limit() const { return std::nullopt; }
  /// Its part in an attention layer with parameters under `scope`; null: none.
  virtual std::unique_ptr<AttentionPosition> in_attention(Scope const& /*scope*/, Index /*heads*/, Index /*key_width*/) const { return {}; }
};

/// A positional encoding whose part in each attention layer is a `Part`, with parameters of the layer's own.
template <class Part>
struct PositionOfLayers : Position {
  std::unique_ptr<AttentionPosition> in_attention(Scope const& scope, Index heads, Index key_width) const override {
    return std::make_unique<Part>(scope, heads, key_width);
  }
};

/// What a positional encoding acts on.
enum class PositionActsOn { nothing, embeddings, queries_and_keys, scores };

/// A kind's constructor arguments from its model.
struct PositionShape {
  Index context, width, heads;
};

struct PositionKind {
  std::string name, formula, paper;
  std::string beyond;  ///< behaviour beyond the trained context
  /// `settings`: the kind's.
  std::function<std::unique_ptr<Position>(Scope const& scope, PositionShape const& shape, Settings const& settings)> make;
  PositionActsOn acts_on = PositionActsOn::scores;  ///< queries_and_keys: rotates pairs of their entries, which needs even widths
  bool of_the_past = false;                         ///< whether it supports causal attention only
  std::shared_ptr<Settings> (*settings)() = [] { return std::make_shared<Settings>(); };  ///< its keys
};
/// Throws Error for an unknown name.
inline PositionKind const& position_kind(std::string const& name) { return Registry<PositionKind>::at(name, "position: there is no"); }

/// `position:` in YAML: a kind's name, or a kind with its keys.
struct PositionChoice : Choice {
  PositionChoice(std::string const& name = "") {  // implicit: a name is a choice, with its keys' defaults; "": none
    for (PositionKind const& each : Registry<PositionKind>::all()) options.push_back({each.name, each.formula, each.settings});
    kind = name;
    if (!name.empty()) settings = position_kind(name).settings();
  }
  PositionChoice(char const* name) : PositionChoice(std::string(name)) {}
};
inline std::unique_ptr<Position> make_position(PositionChoice const& choice, Scope const& scope, PositionShape const& shape) {
  return position_kind(choice.kind).make(scope, shape, *choice.settings);
}

/// PE[p, 2i] = sin(p / 10000^{2i/d}), PE[p, 2i+1] = cos(p / 10000^{2i/d}): [length, width], positions first … first + length − 1.
Tensor sinusoids(Index first, Index length, Index width, DType dtype);

/// T5's bucket of the distance j − i. Causal: the first 16 distances back have their own buckets, and those up to 128 share 16
/// logarithmically spaced ones. Bidirectional: each side has half of the 32.
Index t5_bucket(Index distance, bool causal);

}  // namespace heed
