// e_ij = q_i · k_j

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Dot : Score {
  void fill(AttentionForm&, AttentionInputs&) const override {}
};

Declared<ScoreKind> const dot_score{{"dot", "q_i · k_j", "Luong et al. 2015", "n m d", "everywhere",
                                     [](Scope const&, AttentionSettings const&, HeadShape const&) { return std::make_unique<Dot>(); }}};

}  // namespace

}  // namespace heed
