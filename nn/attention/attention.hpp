#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/attention/steps.hpp"
#include "nn/layers.hpp"
#include "nn/position.hpp"

namespace heed {

/// Added to scores: e_ij += of_query_i + of_key_j, besides a position's bias; undefined: nothing.
struct ForgetBias {
  Tensor of_query, of_key;  ///< [B, H, n] and [B, H, m]
};

/// Score, align and read for all heads at once.
class Attention {
 public:
  /// `position`: of self-attention, if it acts inside; null: none. `parts`: passed to observers. Throws Error for an unknown step.
  Attention(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape, double dropout,
            Position const* position = nullptr, AttentionParts parts = {});

  /// query [B, n, H·d], key [B, m, G·d], value [B, m, G·d_v] → [B, n, H·d_v]; queries and keys are rotated already; query head h reads
  /// group ⌊h G/H⌋ of the keys. Uses the fused kernel, or its reference (ReferenceAttention) if an observer wants the weights or the
  /// position has a bias that the kernel does not support. `part`: the layer's name, if different from the scope's.
  Tensor operator()(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility, Pass const& pass,
                    ForgetBias const& forget_bias = {}, std::string const& part = {}) const;

  /// Score::kinks and AttentionPosition::kinks of all heads.
  std::vector<Tensor> kinks(Tensor const& query, Tensor const& key, Visibility const& visibility) const;

  /// Queries or keys [B, T, H·d] rotated by their positions (rotary), else unchanged.
  Tensor rotated(Tensor const& x, Index offset) const { return position_ ? position_->rotate(x, offset) : x; }

 private:
  /// The arguments of the kernels and their reference.
  struct Call {
    AttentionForm form;
    AttentionInputs in;
    Tensor bias = {};  ///< of a position that the kernels do not support
  };
  Call call(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility, ForgetBias const& forget_bias) const;
  /// Repeats each group's part for its heads: [B, m, G·d] → [B, m, H·d].
  Tensor of_all_heads(Tensor const& x) const;

  std::string part_;
  AttentionParts parts_;
  Index heads_, key_heads_;
  double dropout_;
  std::optional<double> softcap_;
  std::unique_ptr<Score> score_;
  std::unique_ptr<Align> align_;
  std::unique_ptr<Read> read_;
  std::unique_ptr<AttentionPosition> position_;
};

/// While it lives, attention on this thread uses its reference, composed_attention(), instead of a kernel.
struct ReferenceAttention : Temporarily<bool> {
  ReferenceAttention();
  static bool alive();
};

/// Projections, attention, and the output projection (Vaswani et al. 2017, section 3.2.2); grouped keys (Shazeer 2019, Ainslie et al.
/// 2023), and optionally:
///
///   query_key_norm  q_i and k_j of each head divided by their root mean square and multiplied by learned weights, before they are rotated
///   forget          e_ij += Σ_{l=j+1…i} log sigmoid(f_l), f = W_f x + b_f, one number per head
///   gate            concatenated contexts times sigmoid(W_g x + b_g)
///   differential    a = a¹ − λ a², λ = e^{λ_q1·λ_k1} − e^{λ_q2·λ_k2} + λ₀, λ₀ = 0.8 − 0.6 e^{−0.3 layer}; head h owns 2·d_k outputs of the
///                   projections of queries and keys; a head's context goes through RMS norm times (1 − λ₀)
class MultiHead {
 public:
  struct Dimensions {
    Index width;  ///< of the model
    Index heads;
    Index key_width;    ///< d_k, per head
    Index value_width;  ///< d_v, per head
    Index context;
    Index key_heads = 0;          ///< number of groups of heads that share keys and values; 0: every head has its own
    Index layer = 0;              ///< counted from 0
    double query_key_spread = 1;  ///< factor on the initial standard deviation of the query and key projections
    Index sees = 0;               ///< sliding window of self-attention: a query sees the last n tokens, itself included; 0: all
    double scale_factor = 1;      ///< factor on scaled_dot's s
  };
  /// `residual_scale`: factor on the output projection's initial standard deviation. `position` and `parts`: as in Attention.
  MultiHead(Scope const& scope, AttentionSettings const& settings, Dimensions const& shape, bool bias, double dropout,
            double residual_scale, Position const* position = nullptr, AttentionParts parts = {});

  /// Self-attention: x [B, n, width] attends to memory [B, m, width] → [B, n, width]. With a cache, `layer` selects the keys and values to
  /// continue; visibility.offset is then the position of the first query. The result is added to `residual`, if defined.
  Tensor operator()(Tensor const& x, Tensor const& memory, Visibility const& visibility, Pass const& pass, std::size_t layer,
                    Tensor const& residual = {}) const;
  /// Keys and values of memory [B, m, width], which starts at position `offset`; `kept`: where convolutions continue.
  Projected project(Tensor const& memory, Index offset, KeyValueCache::Layer* kept = nullptr) const;
  /// The same for a constant memory; with a cache, computed once per `layer`.
  Projected project_once(Tensor const& memory, Pass const& pass, std::size_t layer) const;
  /// As operator(), for a projected memory.
  Tensor attend(Tensor const& x, Projected const& memory, Visibility const& visibility, Pass const& pass, Tensor const& residual = {},
                KeyValueCache::Layer* kept = nullptr) const;

 private:
  /// λ, and the norm of a head's context.
  struct Differential {
    Differential(Scope const& scope, Dimensions const& shape);
    Tensor lambda() const;

    double start;
    Tensor query1, key1, query2, key2, norm;
  };

  /// Queries or keys [B, T, ·], normalised and rotated.
  Tensor positioned(Tensor const& x, Tensor const& norm, Index offset) const;
  Tensor context(Tensor const& query, Projected const& memory, Visibility const& visibility, Pass const& pass) const;
  ForgetBias forget_bias(Projected const& memory, Index queries, Index offset) const;

  std::string part_;
  Dimensions shape_;
  Linear query_, key_, value_, output_;
  std::optional<Linear> gate_, forget_;
  std::optional<ShortConvolutions> convolutions_;
  Tensor query_norm_, key_norm_;  // [d_k]
  std::optional<Differential> differential_;
  Attention attention_;
};

}  // namespace heed
