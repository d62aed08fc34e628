#include "nn/attention/linear/parts.hpp"

namespace heed {

namespace {

struct NoDecay : Decay {
  Tensor fill(LinearInputs&, Tensor const&) const override { return {}; }
};

Declared<DecayKind> const no_decay{{"none", "0", "Katharopoulos et al. 2020", [](Scope const&, LinearSettings const&, LinearShape const&) {
                                      return std::make_unique<NoDecay>();
                                    }}};

}  // namespace

}  // namespace heed
