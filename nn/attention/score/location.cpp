// e_ij = (W q_i)_j: the query alone determines where to attend

#include <fmt/format.h>

#include "autograd/attention/attention.hpp"
#include "autograd/error.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct LocationScore : Score {
  LocationScore(Scope const& scope, AttentionSettings const&, HeadShape const& shape)
      : matrix(scope.parameter("matrix", {shape.heads, shape.context, shape.width}, Initial::preserving(shape.width), WeightDecay::on)) {}
  void fill(AttentionForm& form, AttentionInputs& in) const override {
    Index const keys = in.key.size(1), heads = form.heads, first = form.visibility.first_key;
    if (first + keys > matrix.size(1))
      throw Error(fmt::format("location: {} keys, but it has learned scores for {} places only", first + keys, matrix.size(1)));
    Tensor const of_positions = expand(slice(matrix, 1, first, first + keys), {in.query.size(0), heads, keys, matrix.size(2)});
    in.key = merge_heads(of_positions);
    if (in.value.defined() && form.groups() < heads) in.value = merge_heads(heads_of_groups(in.value, heads, form.groups()));
    form.key_heads = heads;
  }

  Tensor matrix;  // [H, context, d]
};

Declared<ScoreKind> const location_score{
    {"location", "(W q_i)_j", "Luong et al. 2015", "n m d", "everywhere", makes<LocationScore>, Compares::any_widths}};

}  // namespace

}  // namespace heed
