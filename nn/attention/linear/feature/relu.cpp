#include "autograd/ops/elementwise.hpp"
#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

Declared<FeatureKind> const relu_feature{{"relu", "max(x, 0)", "Kasai et al. 2021", [](Tensor const& x) { return relu(x); }}};

}  // namespace

}  // namespace heed
