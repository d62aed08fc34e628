#include <cmath>

#include "autograd/ops/softmax.hpp"
#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

Declared<FeatureKind> const l2_feature{{"l2", "x / √(Σx² + 1e-6)", "Yang et al. 2024", [](Tensor const& x) {
                                          auto const d = to_double(x.size(-1));
                                          return rms_norm(x, Tensor::full({x.size(-1)}, 1 / std::sqrt(d), x.dtype()), 1e-6 / d);
                                        }}};

}  // namespace

}  // namespace heed
