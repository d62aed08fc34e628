// e_ij = −‖q_i − k_j‖² / (2√d)

#include "nn/attention/pair_score.hpp"

namespace heed {

namespace {

Declared<ScoreKind> const gaussian_score{{"gaussian", "−‖q_i − k_j‖² / (2√d)", "Tsai et al. 2019", "n m d", "everywhere",
                                          pair_score(
                                              [](auto q, auto k) {
                                                auto const apart = q - k;  // no cancellation as in q² − 2qk + k²
                                                return apart * apart;
                                              },
                                              [](auto s, auto const& at) { return s * like(-0.5 / at.root_width, s); })}};

}  // namespace

}  // namespace heed
