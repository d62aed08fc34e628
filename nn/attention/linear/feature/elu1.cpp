#include "autograd/ops/elementwise.hpp"
#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

Declared<FeatureKind> const elu1_feature{{"elu1", "elu(x) + 1", "Katharopoulos et al. 2020", [](Tensor const& x) { return where(x > 0.0, x + 1.0, exp(x)); }}};

}  // namespace

}  // namespace heed
