#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

Declared<FeatureKind> const identity_feature{{"identity", "x", "", [](Tensor const& x) { return x; }}};

}  // namespace

}  // namespace heed
