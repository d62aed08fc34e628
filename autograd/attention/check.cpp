// Checks of fused_attention and pair_sums, the latter with formulas that use every function a score may use. Compiled with less
// optimisation, since they are differentiated in tests only.

#include "autograd/check.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/attention/attention.hpp"
#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/pair_formula.hpp"
#include "autograd/attention/pairs.hpp"
#include "autograd/ops/elementwise.hpp"

namespace heed {

namespace {

using Array = Tensor AttentionInputs::*;
/// Arrays that a sample draws besides query, key and value, with shape and range.
using Extras = std::vector<std::pair<Array, SampleInput>>;

Sample attention_sample(AttentionForm const& form, Shape const& query, Shape const& key, Shape const& value, Extras const& extras,
                        bool spread = false) {
  std::vector<SampleInput> inputs{{query}, {key}, {value}};
  for (auto const& extra : extras) inputs.push_back(extra.second);
  auto const arranged = [=](std::vector<Tensor> const& x) {
    AttentionInputs in{x[0], x[1], x[2]};
    for (std::size_t i = 0; i < extras.size(); ++i) in.*extras[i].first = x[i + 3];
    if (spread) {  // centres spread over the keys, so that queries are not in the order of their windows
      std::vector<std::int64_t> shifts;
      for (std::int64_t i = 0; i < query[1]; ++i) shifts.push_back(i * 17 % (key[1] - 2));
      in.centres = in.centres + Tensor::of(shifts, {query[1], 1}).to(x.front().dtype());
    }
    return in;
  };
  return {std::move(inputs), [=](std::vector<Tensor> const& x) { return fused_attention(form, arranged(x)); },
          [=](std::vector<Tensor> const& x) { return attention_reference(form, arranged(x)); }};
}

/// The kinds of scores that the kernels distinguish, and the arrays that each reads besides queries and keys.
struct SampleScore {
  std::shared_ptr<PairSum const> sum;
  std::shared_ptr<PairFinish const> finish;
  std::optional<double> softcap;
  bool weighted, finished;
};
std::vector<SampleScore> sample_scores() {
  auto const smooth = pair_sum([](auto q, auto k, auto w) { return w * sigmoid(q - k) + 0.1 * (q * k); });
  auto const finish = pair_finish([](auto s, auto const& at) {
    auto const near = at.distance / (20.0 + at.distance * at.distance);
    return at.parameter * tanh(s + at.query * at.key) - at.second_parameter * near / (2 + s * s) * like(at.root_width, s);
  });
  return {
      {{}, {}, {}, false, false}, {additive_sum(), {}, 1.5, true, false}, {smooth, finish, {}, true, true}, {{}, finish, 2.0, false, true}};
}

std::vector<Sample> attention_samples(std::optional<WeightDropout> const& dropout = std::nullopt) {
  constexpr Array relative = &AttentionInputs::relative, near = &AttentionInputs::near, centres = &AttentionInputs::centres;
  constexpr Array of_row = &AttentionInputs::of_row, of_column = &AttentionInputs::of_column;
  Visibility const causal{.causal = true, .lengths = {}, .offset = 0};
  Visibility const padded{.causal = true, .lengths = Tensor::of(std::vector<std::int64_t>{4, 2, 0}, {3}), .offset = 0};
  Visibility const later{.causal = true, .lengths = {}, .offset = 2};
  auto const lengths = [](std::vector<std::int64_t> const& values) { return Tensor::of(values, {std::ssize(values)}); };
  Visibility const short_queries{.causal = false, .lengths = lengths({5, 4}), .offset = 2, .query_lengths = lengths({3, 1})};
  std::vector<Sample> samples;
  for (SampleScore const& score : sample_scores()) {
    auto const add = [&](Visibility const& visibility, Shape const& query, Shape const& key, Shape const& value,
                         std::vector<Array> const& extras = {}, double window = 0, std::int64_t groups = 2) {
      AttentionForm form{.heads = 2, .visibility = visibility, .scale = 0.5};
      form.sum = score.sum, form.finish = score.finish, form.softcap = score.softcap;
      form.window = window, form.dropout = dropout, form.key_heads = groups;
      std::int64_t const b = query[0], n = query[1], m = key[1], d = query[2] / 2;
      Extras drawn;
      if (score.weighted) drawn.push_back({&AttentionInputs::weight, {{2, d}}});
      if (score.finished)
        drawn.insert(
            drawn.end(),
            {{&AttentionInputs::parameter, {{2, 2}}}, {&AttentionInputs::of_query, {{b, 2, n}}}, {&AttentionInputs::of_key, {{b, 2, m}}}});
      bool spread = false;
      for (Array const array : extras) {
        if (array == relative) drawn.push_back({array, {{2, n + m - 1}}});
        if (array == near) drawn.push_back({array, {{b, n, 2, 3}}});
        if (array == of_row) drawn.insert(drawn.end(), {{of_row, {{b, 2, n}}}, {of_column, {{b, 2, m}}}});
        if (array != centres) continue;
        // Far enough from half-integers that no key enters or leaves a window of 1.7 within a finite difference.
        drawn.push_back({array, {{b, 2, n, 1}, 1.35, 1.6}});
        form.gaussian = true;
        form.deviation = 0.85;
        spread = n > 64;
      }
      samples.push_back(attention_sample(form, query, key, value, drawn, spread));
    };
    add(causal, {2, 5, 6}, {2, 5, 6}, {2, 5, 4}, {near});
    add({}, {2, 3, 4}, {2, 5, 4}, {2, 5, 2}, {relative, of_row});
    add(padded, {3, 4, 4}, {3, 4, 4}, {3, 4, 4}, {relative});
    add(causal, {2, 4, 4}, {2, 4, 2}, {2, 4, 1}, {relative}, 0, 1);
    add(short_queries, {2, 4, 4}, {2, 5, 4}, {2, 5, 4}, {relative});
    add(short_queries, {2, 4, 4}, {2, 5, 4}, {2, 5, 4}, {near}, 1.5);
    add(short_queries, {2, 4, 4}, {2, 5, 4}, {2, 5, 4}, {centres}, 1.7);
    add(later, {2, 3, 4}, {2, 5, 4}, {2, 5, 4}, {near, of_row}, 1.5);
    add(padded, {3, 4, 4}, {3, 4, 4}, {3, 4, 2}, {centres}, 1.7);
    add(causal, {1, 4, 4}, {1, 4, 4}, {1, 4, 2}, {relative, centres});
    add({}, {1, 1, 2}, {1, 1, 2}, {1, 1, 2});
    add(causal, {1, 70, 2}, {1, 70, 2}, {1, 70, 2}, {}, 6);  // more than one block
    add({}, {1, 70, 4}, {1, 12, 2}, {1, 12, 1}, {relative, centres}, 1.7, 1);
  }
  return samples;
}

Declared<OperationCheck> const attention_check{
    {"fused_attention",
     "Σ_j a_ij v_j, a_i of the scores over visible keys in a window",
     attention_samples(),
     {{[] {
         Tensor const x = Tensor::zeros({2, 3, 4}, DType::float64);
         fused_attention({.heads = 2, .visibility = {}}, {x, Tensor::zeros({2, 3, 6}, DType::float64), x});
       },
       "attention: query [2, 3, 4], key [2, 3, 6], value [2, 3, 4] with 2 heads"},
      {[] {
         Tensor const x = Tensor::zeros({2, 3, 4}, DType::float64);
         AttentionInputs in{x, x, x};
         in.relative = x;
         fused_attention({.heads = 2, .visibility = {}}, in);
       },
       "attention: biases by distance are [2, 3, 4], where [2, 5] is wanted"},
      {[] {
         Tensor const x = Tensor::zeros({2, 3, 4}, DType::float64);
         AttentionForm form{.heads = 2, .visibility = {}};
         form.dropout = WeightDropout{1, Stream(1, "dropout")};
         fused_attention(form, {x, x, x});
       },
       "attention: the dropout rate 1 is not in [0, 1)"}}}};
Declared<OperationCheck> const attention_dropout_check{
    {"fused_attention with dropout", "Σ_j D_ij a_ij v_j", attention_samples(WeightDropout{0.3, Stream(1, "dropout")}), {}}};

Declared<OperationCheck> const reference_check{
    {"attention_reference", "the same, composed", {{{{{1, 2, 4}}, {{1, 3, 4}}, {{1, 3, 2}}}, [](std::vector<Tensor> const& x) {
                                                      return attention_reference({.heads = 2, .visibility = {}}, {x[0], x[1], x[2]});
                                                    }}}}};
Declared<OperationCheck> const scaled_dot_attention_check{
    {"scaled_dot_attention", "Σ_j softmax_j(s q_i·k_j) v_j", {{{{{1, 2, 4}}, {{1, 3, 4}}, {{1, 3, 2}}}, [](std::vector<Tensor> const& x) {
                                                                 return scaled_dot_attention(x[0], x[1], x[2], 2, 0.5, {});
                                                               }}}}};

std::vector<Sample> pair_sum_samples(std::shared_ptr<PairSum const> const& sum, bool weighted) {
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

Declared<OperationCheck> const additive_check{{"pair_sums of tanh", "Σ_c w_c tanh(q_ic + k_jc)", pair_sum_samples(additive_sum(), true)}};
Declared<OperationCheck> const weighted_check{
    {"pair_sums with a weight", "Σ_c w_c σ(q_ic − k_jc)",
     pair_sum_samples(pair_sum([](auto q, auto k, auto w) { return w * sigmoid(q - k); }), true)}};
Declared<OperationCheck> const formula_check{{"pair_sums of two", "Σ_c f(q_ic, k_jc)",
                                              pair_sum_samples(pair_sum([](auto q, auto k) {
                                                                 auto const apart = 1 + (q - k) * (q - k);
                                                                 return log(apart) / sqrt(apart) + exp(-apart) * sin(k) + k * log1p(q * q) +
                                                                        tanh(q) * abs(k + 5.0);
                                                               }),
                                                               false)}};

}  // namespace

}  // namespace heed
