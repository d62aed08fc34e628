// c_i = Σ_j a_ij v_j: the expectation

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Soft : Read {
  std::optional<HardRead> choice(Shape const&, Visibility const&, Pass const&, std::string const&) const override { return std::nullopt; }
};

Declared<ReadKind> const soft_read{{"soft", "Σ_j a_ij v_j", "Bahdanau et al. 2015", "n m d_v", "everywhere",
                                    [](Scope const&, AttentionSettings const&, HeadShape const&) { return std::make_unique<Soft>(); }}};

}  // namespace

}  // namespace heed
