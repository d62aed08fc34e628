// a_i = 1.5-entmax(e_i): between softmax and sparsemax

#include "nn/attention/align/entmax15.hpp"

namespace heed {

namespace {

Declared<AlignKind> const entmax15_align{{"entmax15", "max(e_ij/2 − τ_i, 0)², Σ_j = 1", "Peters et al. 2019", "n m log m",
                                          "everywhere, once: the derivative has kinks where the support changes",
                                          align_by_rows<Entmax15Rows>(), Compares::same_width, true}};

}  // namespace

}  // namespace heed
