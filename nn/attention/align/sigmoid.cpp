// a_ij = sigmoid(e_ij − log n_i), n_i the number of keys that query i sees; rows need not sum to one

#include "nn/attention/steps.hpp"

namespace heed {

namespace {

struct Sigmoid : Align {
  Tensor operator()(Tensor const& scores, Tensor const&, Visibility const& visibility) const override {
    std::int64_t const queries = scores.size(-2);
    std::int64_t const keys = scores.size(-1);
    Tensor const count = visibility.counts(queries, keys, scores.dtype());
    return sigmoid(scores - log(clamp(count, 1, static_cast<double>(keys) + 1))) * visibility.mask(queries, keys, scores.dtype());
  }
};

Declared<Align> const declared{{"sigmoid", "sigmoid(e_ij − log n_i)", "Ramapuram et al. 2024", "n m", "everywhere",
                                [](Scope const&, AttentionSettings const&, HeadShape const&) { return std::make_unique<Sigmoid>(); }}};

}  // namespace

}  // namespace heed
