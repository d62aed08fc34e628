#pragma once

#include "autograd/attention/fused_attention.hpp"

namespace heed {

/// Second derivatives of fused attention: of Σ u·g over its inputs, g the inputs' gradients for dy, the derivatives by the inputs and by
/// dy.
struct AttentionSecond {
  AttentionInputs inputs;
  Tensor dy;
};
/// They are attention_reference's, of one block of queries at a time, with sums that hold nothing of size [n, m, d] (pair_sums.hpp): what a
/// block holds does not grow with n.
AttentionSecond attention_second(AttentionForm const& form, AttentionInputs const& inputs, Tensor const& dy, AttentionInputs const& u);

}  // namespace heed
