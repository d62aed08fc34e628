// e_ij = −‖q_i − k_j‖² / (2√d)

#include <cmath>

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Gaussian : Score {
  Tensor operator()(Tensor const& query, Tensor const& key) const override {
    Tensor const distance = unsqueeze(query, 3) - unsqueeze(key, 2);  // [B, H, n, m, d]: no cancellation as in q² − 2qk + k²
    return scale(sum(distance * distance, {-1}), -0.5 / std::sqrt(static_cast<double>(query.size(-1))));
  }
};

Declared<Score> const declared{{"gaussian", "−‖q_i − k_j‖² / (2√d)", "Tsai et al. 2019", "n m d", "everywhere",
                                [](Scope const&, AttentionSettings const&, HeadShape const&) { return std::make_unique<Gaussian>(); }}};

}  // namespace

}  // namespace heed
