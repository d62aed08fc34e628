#pragma once

#include <cstdint>
#include <memory>

#include "autograd/attention/pairs.hpp"

namespace heed {

/// Σ_c f(q_ic, k_jc, w_c) of every pair: query [B, n, H·d], key [B, m, G·d], weight [H, d] or undefined → [B, H, n, m], head h reading
/// group ⌊h G/H⌋. First and second derivatives by kernels that hold nothing of size [n, m, d].
Tensor pair_sums(std::shared_ptr<PairSum const> const& sum, Tensor const& query, Tensor const& key, Tensor const& weight,
                 std::int64_t heads, std::int64_t groups);

}  // namespace heed
