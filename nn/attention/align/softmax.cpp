// a_i = softmax(e_i) over the visible keys: global attention

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

Declared<AlignKind> const softmax_align{
    {"softmax", "e^{e_ij} / Σ_j e^{e_ij}", "Bahdanau et al. 2015", "n m", "everywhere", makes<Align>, Compares::same_width, true}};

}  // namespace

}  // namespace heed
