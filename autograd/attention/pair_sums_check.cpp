// What pair_sums is checked with: formulas of every function that a score may use. Compiled with less optimisation, for they are only
// differentiated in tests.

#include <cstdint>
#include <memory>
#include <vector>

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/pair_formula.hpp"
#include "autograd/attention/pair_sums.hpp"
#include "autograd/check.hpp"

namespace heed {

namespace {

std::vector<Sample> samples(std::shared_ptr<PairSum const> const& sum, bool weighted) {
  auto const sample = [=](Shape const& query, Shape const& key, std::int64_t heads, std::int64_t groups) {
    std::vector<SampleInput> inputs{{query}, {key}};
    if (weighted) inputs.push_back({{heads, query[2] / heads}});
    auto const weight = [](std::vector<Tensor> const& x) { return x.size() > 2 ? x[2] : Tensor(); };
    return Sample{inputs, [=](std::vector<Tensor> const& x) { return pair_sums(sum, x[0], x[1], weight(x), heads, groups); },
                  [=](std::vector<Tensor> const& x) {
                    return sum->composed(split_heads(x[0], heads), heads_of_groups(x[1], heads, groups), weight(x));
                  }};
  };
  return {sample({2, 5, 6}, {2, 7, 6}, 2, 2), sample({2, 3, 4}, {2, 5, 2}, 2, 1), sample({1, 1, 1}, {1, 1, 1}, 1, 1),
          sample({1, 67, 2}, {1, 35, 2}, 1, 1)};
}

Declared<OperationCheck> const additive_check{{"pair_sums of tanh", "Σ_c w_c tanh(q_ic + k_jc)", samples(additive_sum(), true)}};
Declared<OperationCheck> const weighted_check{{"pair_sums with a weight", "Σ_c w_c σ(q_ic − k_jc)",
                                               samples(pair_sum([](auto q, auto k, auto w) { return w * sigmoid(q - k); }), true)}};
Declared<OperationCheck> const formula_check{{"pair_sums of two", "Σ_c f(q_ic, k_jc)",
                                              samples(pair_sum([](auto q, auto k) {
                                                        auto const apart = 1 + (q - k) * (q - k);
                                                        return log(apart) / sqrt(apart) + exp(-apart) * sin(k) + k * log1p(q * q) +
                                                               tanh(q) * abs(k + 5.0);
                                                      }),
                                                      false)}};

}  // namespace

}  // namespace heed
