// c_i = Σ_j a_ij v_j: the expectation

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

Declared<ReadKind> const soft_read{{"soft", "Σ_j a_ij v_j", "Bahdanau et al. 2015", "n m d_v", "everywhere", makes<Read>}};

}  // namespace

}  // namespace heed
