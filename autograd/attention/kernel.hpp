#pragma once

#include <cstdint>

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/pairs.hpp"

namespace heed::kernels {

/// The visible keys (the first `visible`) with |j − centre| ≤ reach; if there is none, the visible key nearest to the centre (the lower of
/// two). Empty only where nothing is visible.
KeyRange window_around(double centre, double reach, std::int64_t visible);

/// One call of fused attention.
struct AttentionCall : AttentionExtents {
  AttentionForm form;
  AttentionInputs in;
};

/// Numbers of every row that the forward pass keeps for the derivative: a softmax's largest score m and 1/Σ_j e^{e_ij − m},
/// or what an align keeps.
inline constexpr std::int64_t kept_numbers = 2;

struct AttentionOutput {
  Tensor context;          ///< [B, n, H·d_v + form.scores_of_choice()]: behind the contexts what a scored hard read tells
  Tensor kept;             ///< [B, H, n, kept_numbers]
  Tensor chosen = {};      ///< of a hard read: J, int64 [B, H, n]
  Tensor* rows = nullptr;  ///< unless null: [B, H, n, row_statistics]
};
/// Fills these.
template <class T>
void attention_forward(AttentionCall const& call, AttentionOutput& out);

/// Gradients of the inputs from that of the result; those whose input is undefined stay so. A hard read's form says what was chosen.
/// `over_queries`: the queries' take the place of the queries, of which a block is read no more when its own are written (not of a pair
/// sum).
template <class T>
AttentionInputs attention_backward(AttentionCall const& call, Tensor const& kept, Tensor const& dresult, bool over_queries);

}  // namespace heed::kernels
