// e_ij = q_iᵀ W k_j: the multiplicative score

#include "autograd/ops/product.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct General : Score {
  General(Scope const& scope, AttentionSettings const&, HeadShape const& shape)
      : matrix(scope.parameter("matrix", {shape.heads, shape.width, shape.key_width()},
                               Initial::preserving(shape.width * shape.key_width()), WeightDecay::on)) {}
  void fill(AttentionForm& form, AttentionInputs& in) const override { in.query = head_product(in.query, matrix, form.heads); }

  Tensor matrix;  // [H, d of a query, d of a key]
};

Declared<ScoreKind> const general_score{
    {"general", "q_iᵀ W k_j", "Luong et al. 2015", "n m d + n d²", "everywhere", makes<General>, Compares::any_widths}};

}  // namespace

}  // namespace heed
