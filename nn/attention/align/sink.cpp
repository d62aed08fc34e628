// a_ij = e^{e_ij} / (e^{s_h} + Σ_j e^{e_ij}): a softmax with an extra key without a value; its score s_h is learned

#include "nn/attention/align/rows.hpp"

namespace heed {

namespace {

Declared<AlignKind> const sink_align{{"sink", "e^{e_ij} / (e^{s_h} + Σ_j e^{e_ij})", "Xiao et al. 2023, gpt-oss 2025", "n m", "everywhere",
                                      align_by_rows<SoftmaxWithSink>("sink", [](HeadShape const&) { return 0.0; })}};

}  // namespace

}  // namespace heed
