// a_ij = e^{e_ij} / (1 + Σ_j e^{e_ij}): a head may read nothing

#include "nn/attention/align/rows.hpp"

namespace heed {

namespace {

Declared<AlignKind> const softmax1_align{
    {"softmax1", "e^{e_ij} / (1 + Σ_j e^{e_ij})", "Miller 2023", "n m", "everywhere", align_by_rows<SoftmaxWithSink>()}};

}  // namespace

}  // namespace heed
