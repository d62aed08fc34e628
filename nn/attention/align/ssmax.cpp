// a_i = softmax(s_h · log n_i · e_i), n_i the number of keys that query i sees: rows that stay as sharp in longer contexts

#include <algorithm>
#include <cmath>

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Ssmax : Align {
  Ssmax(Scope const& scope, HeadShape const& shape)
      : sharpness(
            scope.parameter("scale", {shape.heads}, Initial::constant(1 / std::log(std::max(2.0, static_cast<double>(shape.context)))))) {}
  Tensor operator()(Tensor const& scores, Tensor const&, Visibility const& visibility) const override {
    std::int64_t const queries = scores.size(-2), keys = scores.size(-1);
    Tensor const count = clamp(visibility.counts(queries, keys, scores.dtype()), 1, static_cast<double>(keys) + 1);
    return masked_softmax(reshape(sharpness, {-1, 1, 1}) * log(count) * scores, visibility.mask(queries, keys, scores.dtype()));
  }

  Tensor sharpness;  // [H]
};

Declared<Align> const declared{
    {.name = "ssmax",
     .formula = "softmax_j(s_h log n_i · e_ij)",
     .paper = "Nakanishi 2025",
     .cost = "n m",
     .smooth = "everywhere",
     .make = [](Scope const& scope, AttentionSettings const&, HeadShape const& shape) { return std::make_unique<Ssmax>(scope, shape); },
     .rows_are_distributions = true}};

}  // namespace

}  // namespace heed
