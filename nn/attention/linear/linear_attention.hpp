#pragma once

#include <memory>
#include <optional>
#include <string>

#include "nn/attention/attention.hpp"
#include "nn/attention/linear/parts.hpp"

namespace heed {

/// Attention without softmax: projections, a recurrence over a state per head, and the output projection. In this order: projections of x;
/// a short convolution; an activation; the position (rotary); φ and the scale of queries; the recurrence (autograd/attention/
/// linear_attention.hpp); skip; the norm of each head; the gate; or instead of the former the norm of all heads; the output projection.
///
/// Where a token sees both sides, a second recurrence runs over the tokens after it, from the last one on, with the same parameters.
/// Dropout on weights has no meaning here. A token that is padding changes no other.
class LinearAttention {
 public:
  /// As MultiHead's constructor.
  LinearAttention(Scope const& scope, AttentionSettings const& settings, MultiHead::Dimensions const& shape, bool bias,
                  double residual_scale, Position const* position = nullptr, AttentionParts parts = {});

  /// x [B, T, width] → [B, T, width], plus `residual` if defined. With a cache, continues the state of `layer`. Observers receive implicit
  /// weights m_ij, with which the recurrence gives Σ_j m_ij v_j, but no scores.
  Tensor operator()(Tensor const& x, Visibility const& visibility, Pass const& pass, std::size_t layer, Tensor const& residual = {}) const;

 private:
  /// Queries [B, T, H·d], keys [B, T, n·H·d] and values [B, T, n·H·e], n per token, as the recurrence reads them.
  LinearInputs inputs(Tensor const& x, Index offset, KeyValueCache::Layer* kept) const;
  /// Queries or keys [B, T, n·G·d] after φ, for all heads: [B, T, n·H·d].
  Tensor with_feature(Tensor const& x) const;
  /// The contexts [B, T, H·e].
  Tensor read(LinearInputs const& in, Tensor const& x, Visibility const& visibility, KeyValueCache::Layer* kept) const;
  Tensor recurrence(LinearInputs in, Visibility const& visibility, Tensor* state) const;
  void observe(LinearInputs const& in, Tensor const& x, Visibility const& visibility, Pass const& pass) const;

  std::string part_;
  AttentionParts parts_;
  MultiHead::Dimensions shape_;
  LinearSettings settings_;
  double scale_;
  Linear query_, key_, value_, output_;
  std::optional<Linear> gate_;
  std::optional<ShortConvolutions> convolutions_;
  FeatureKind const* feature_;
  std::unique_ptr<StateDecay> decay_;
  std::unique_ptr<StateWrite> write_;
  std::unique_ptr<AttentionPosition> position_;
  Tensor output_norm_, skip_;  // [e] or [H·e], and [H]
};

}  // namespace heed
