#pragma once

#include <memory>
#include <string>

#include "nn/attention/steps.hpp"
#include "nn/layers.hpp"
#include "nn/position.hpp"

namespace heed {

/// The three steps in a row, for all heads at once.
class Attention {
 public:
  /// `position`: of self-attention, for those that act inside it; null: none. `parts`: what observers are told. Throws Error for a step
  /// that is not declared.
  Attention(Scope const& scope, AttentionSettings const& settings, HeadShape const& shape, double dropout,
            Position const* position = nullptr, LookingParts parts = {});

  /// query [B, n, H·d], key [B, m, H·d], value [B, m, H·d_v] → [B, n, H·d_v]; queries and keys rotated already. By the fused kernel where
  /// there is one for the combination and no observer wants the weights, else by reference().
  Tensor operator()(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility, Pass const& pass) const;

  /// The same as a composition of the steps, whatever the combination; differentiable to any order.
  Tensor reference(Tensor const& query, Tensor const& key, Tensor const& value, Visibility const& visibility, Pass const& pass) const;

  /// The weights a_ij alone, [B, H, n, m].
  Tensor weights(Tensor const& query, Tensor const& key, Visibility const& visibility) const;

  /// Score::corners of all heads.
  Tensor corners(Tensor const& query, Tensor const& key) const;

  /// Queries or keys [B, T, H·d] rotated by their positions (rotary), or as they are.
  Tensor rotated(Tensor const& x, std::int64_t offset) const { return position_ ? position_->rotate(x, offset) : x; }

 private:
  struct Scored {
    Tensor scores, weights;
  };
  Scored scored(Tensor const& query, Tensor const& key, Visibility const& visibility) const;

  std::string part_;
  LookingParts parts_;
  std::int64_t heads_;
  double dropout_;
  std::unique_ptr<Score> score_;
  std::unique_ptr<Align> align_;
  std::unique_ptr<Read> read_;
  std::unique_ptr<AttentionPosition> position_;
};

/// While it lives, attention on this thread goes by reference() where it would take a fused kernel.
class ReferenceAttention {
 public:
  ReferenceAttention();
  ~ReferenceAttention();
  ReferenceAttention(ReferenceAttention const&) = delete;
  ReferenceAttention& operator=(ReferenceAttention const&) = delete;

 private:
  bool before_;
};

/// Projections, attention, and the projection of the heads' contexts (Vaswani et al. 2017, section 3.2.2).
class MultiHead {
 public:
  struct Shape {
    std::int64_t width;  ///< of the model
    std::int64_t heads;
    std::int64_t key_width;    ///< d_k, per head
    std::int64_t value_width;  ///< d_v, per head
    std::int64_t context;
    double query_key_spread = 1;  ///< factor on the initial spread of what makes queries and keys
  };
  /// `share`: the factor on the output projection's initial spread. `position` and `parts`: as Attention's.
  MultiHead(Scope const& scope, AttentionSettings const& settings, Shape const& shape, bool bias, double dropout, double share,
            Position const* position = nullptr, LookingParts parts = {});

  /// x [B, n, width] attends to memory [B, m, width] → [B, n, width]. With a cache, `layer` says whose keys and values to continue;
  /// visibility.offset is then the position of the first query. The result is added to `residual`, if there is one.
  Tensor operator()(Tensor const& x, Tensor const& memory, Visibility const& visibility, Pass const& pass, std::size_t layer,
                    Tensor const& residual = {}) const;
  /// Keys and values of memory [B, m, width], whose first place stands at `offset`.
  Projected project(Tensor const& memory, std::int64_t offset, Pass const& pass) const;
  /// As operator(), of a memory that is projected already.
  Tensor look(Tensor const& x, Projected const& memory, Visibility const& visibility, Pass const& pass, Tensor const& residual = {}) const;

 private:
  std::string part_;
  Linear query_, key_, value_, output_;
  Attention attention_;
};

}  // namespace heed
