// Features φ of linear attention. Another one may stand in a file of its own.

#include <cmath>

#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

Declared<FeatureKind> const identity_feature{{"identity", "x", "", [](Tensor const& x) { return x; }}};
Declared<FeatureKind> const relu_feature{{"relu", "max(x, 0)", "Kasai et al. 2021", [](Tensor const& x) { return relu(x); }}};
Declared<FeatureKind> const elu1_feature{
    {"elu1", "elu(x) + 1", "Katharopoulos et al. 2020", [](Tensor const& x) { return where(x > 0.0, x + 1.0, exp(x)); }}};
Declared<FeatureKind> const l2_feature{{"l2", "x / √(Σx² + 1e-6)", "Yang et al. 2024", [](Tensor const& x) {
                                          auto const d = to_double(x.size(-1));
                                          return rms_norm(x, Tensor::full({x.size(-1)}, 1 / std::sqrt(d), x.dtype()), 1e-6 / d);
                                        }}};
Declared<FeatureKind> const softmax_feature{
    {"softmax", "softmax over the d entries", "Shen et al. 2021", [](Tensor const& x) { return softmax(x); }}};

}  // namespace

}  // namespace heed
