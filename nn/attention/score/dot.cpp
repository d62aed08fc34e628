// e_ij = q_i · k_j

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Dot : Score {
  std::optional<FusedScore> fused(Tensor const& query, Tensor const&, HeadGroups const&) const override { return FusedScore{query}; }
};

Declared<ScoreKind> const declared{{"dot", "q_i · k_j", "Luong et al. 2015", "n m d", "everywhere",
                                    [](Scope const&, AttentionSettings const&, HeadShape const&) { return std::make_unique<Dot>(); }}};

}  // namespace

}  // namespace heed
