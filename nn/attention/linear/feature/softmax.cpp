#include "autograd/ops/softmax.hpp"
#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

Declared<FeatureKind> const softmax_feature{{"softmax", "softmax over the d entries", "Shen et al. 2021", [](Tensor const& x) { return softmax(x); }}};

}  // namespace

}  // namespace heed
