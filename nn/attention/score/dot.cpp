// e_ij = q_i · k_j

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Dot : Score {
  Tensor operator()(Tensor const& query, Tensor const& key) const override { return matmul(query, key, false, true); }
  std::optional<FusedScore> fused(Tensor const& query, std::int64_t) const override {
    return FusedScore{AttentionForm::Score::dot, 1, query, {}};
  }
};

Declared<Score> const declared{{"dot", "q_i · k_j", "Luong et al. 2015", "n m d", "everywhere",
                                [](Scope const&, AttentionSettings const&, HeadShape const&) { return std::make_unique<Dot>(); }}};

}  // namespace

}  // namespace heed
