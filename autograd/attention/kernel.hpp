#pragma once

#include "autograd/attention/fused_attention.hpp"

namespace heed::kernels {

/// The visible keys with |j − centre| ≤ reach, else the nearest visible one (the lower of two). Empty only if no key is visible.
KeyRange window_around(double centre, double reach, KeyRange visible);

/// One call of fused attention.
struct AttentionCall : AttentionExtents {
  AttentionForm form;
  AttentionInputs in;
};

/// Numbers per row that the forward pass keeps for the derivative: softmax's largest score m and 1/Σ_j e^{e_ij − m}, or an align's own.
inline constexpr Index kept_numbers = 2;

struct AttentionOutput {
  Tensor context;          ///< [B, n, H·d_v + form.scores_of_choice()]: contexts, then a scored hard read's numbers
  Tensor kept;             ///< [B, H, n, kept_numbers]
  Tensor chosen = {};      ///< of a hard read: J, int64 [B, H, n]
  Tensor* rows = nullptr;  ///< unless null: [B, H, n, row_statistics]
};
/// The forward pass; sets the members above.
template <class T>
void attention_forward(AttentionCall const& call, AttentionOutput& out);

/// Whether a row may be computed in parts: softmax needs only its largest score and its sum.
bool has_tiles(AttentionCall const& call);

/// Gradients of the inputs from the result's gradient, and from the result if has_tiles(); undefined inputs have undefined gradients. For a
/// hard read the form must hold the chosen keys. `over_queries`: write the queries' gradients over the queries (not for a pair sum).
template <class T>
AttentionInputs attention_backward(AttentionCall const& call, Tensor const& kept, Tensor const& result, Tensor const& dresult,
                                   bool over_queries);

}  // namespace heed::kernels
