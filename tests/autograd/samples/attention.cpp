// Attention: its parts, fused attention, and pair_sums with formulas that use every function a score may use.

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/pair_formula.hpp"
#include "tests/autograd/samples/operation_check.hpp"

namespace heed::test {

namespace {

/// f of centres in [0, 4).
Sample of_centres(std::function<Tensor(Tensor const&)> const& f) {
  return {{{{2, 2, 3, 1}, {0, 4}}}, [f](Tensors const& x) { return f(x[0]); }};
}

DeclaredChecks const part_checks{{
    {"split_heads",
     {one({2, 3, 8}, split_heads, 4)},
     {fails("split_heads: [2, 3, 8] does not split into 3 heads", split_heads, zeros({2, 3, 8}), 3)}},
    {"merge_heads", {one({2, 4, 3, 2}, merge_heads)}, {fails("merge_heads: wants [B, H, T, d], not [2, 3]", merge_heads, zeros({2, 3}))}},
    {"relative_bias",
     {one({2, 6}, relative_bias, 3, 4)},
     {fails("relative_bias: [2, 5] for 3 queries and 4 keys: wants [H, 6]", relative_bias, zeros({2, 5}), 3, 4)}},
    {"near_bias", {one({2, 3, 2, 5}, near_bias, 1, 6)}},
    {"gaussian_around", {of_centres([](Tensor const& x) { return gaussian_around(x, 1.5, 5); })}},
    {"window_mask", {of_centres([](Tensor const& x) { return window_mask(x.detach(), 1.5, {}, 4); })}, {}, false},
    {"rotary",
     {one({2, 3, 8}, rotary, 2, 0, RotaryFrequencies{}, false),
      one({1, 2, 6}, rotary, 1, 5, RotaryFrequencies{.base = 100, .stretch = 2.5}, true)},
     {fails("rotary: [2, 3, 6] is not [B, T, H·d] with an even d for 2 heads", rotary, zeros({2, 3, 6}), 2, 0, RotaryFrequencies{},
            false)}},
}};

using Array = Tensor AttentionInputs::*;

Visibility const everything{}, causal{.causal = true, .lengths = {}, .offset = 0};

/// Fused attention and its reference, of the inputs that `arranged` makes of what is drawn.
template <class Arranged>
Sample attention_sample(AttentionForm const& form, std::vector<SampleInput> const& inputs, Arranged const& arranged) {
  return {inputs, [=](Tensors const& x) { return fused_attention(form, arranged(x)); },
          [=](Tensors const& x) { return attention_reference(form, arranged(x)); }};
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

std::vector<Sample> attention_samples(std::optional<WeightDropout> const& dropout) {
  constexpr Array relative = &AttentionInputs::relative, near = &AttentionInputs::near, centres = &AttentionInputs::centres;
  constexpr Array of_row = &AttentionInputs::of_row, of_column = &AttentionInputs::of_column;
  Visibility const padded{.causal = true, .lengths = integers({4, 2, 0}, {3}), .offset = 0};
  Visibility const later{.causal = true, .lengths = {}, .offset = 2};
  Visibility const short_queries{.causal = false, .lengths = integers({5, 4}, {2}), .offset = 2, .query_lengths = integers({3, 1}, {2})};
  Visibility const sliding{.causal = true, .lengths = {}, .offset = 0, .query_lengths = {}, .sees = 3, .first_key = 2};
  Visibility const far{.causal = false, .lengths = {}, .offset = 0, .query_lengths = {}, .sees = 62};
  Visibility const both_sides{
      .causal = false, .lengths = integers({5, 3}, {2}), .offset = 1, .query_lengths = integers({4, 2}, {2}), .sees = 2};
  std::vector<Sample> samples;
  for (SampleScore const& score : sample_scores()) {
    auto const add = [&](Visibility const& visibility, Shape const& query, Shape const& key, Shape const& value,
                         std::vector<Array> const& extras = {}, double window = 0, Index groups = 2) {
      AttentionForm form{.heads = 2, .visibility = visibility, .scale = 0.5};
      form.sum = score.sum, form.finish = score.finish, form.softcap = score.softcap;
      form.window = window, form.dropout = dropout, form.key_heads = groups;
      Index const b = query[0], n = query[1], m = key[1], d = query[2] / 2;
      std::vector<SampleInput> inputs{{query}, {key}, {value}};
      std::vector<Array> arrays{&AttentionInputs::query, &AttentionInputs::key, &AttentionInputs::value};
      auto const drawn = [&](Array array, Shape const& shape, Range range = {}) {
        arrays.push_back(array);
        inputs.push_back({shape, range});
      };
      if (score.weighted) drawn(&AttentionInputs::weight, {2, d});
      if (score.finished) {
        drawn(&AttentionInputs::parameter, {2, 2});
        drawn(&AttentionInputs::of_query, {b, 2, n});
        drawn(&AttentionInputs::of_key, {b, 2, m});
      }
      Tensor shifts;
      for (Array const array : extras) {
        if (array == relative) drawn(array, {2, n + m - 1});
        if (array == near) drawn(array, {b, n, 2, 3});
        if (array == of_row) drawn(of_row, {b, 2, n}), drawn(of_column, {b, 2, m});
        if (array != centres) continue;
        // Far enough from half-integers that no key enters or leaves a window of 1.7 within a finite difference.
        drawn(array, {b, 2, n, 1}, {1.35, 1.6});
        form.gaussian = true;
        form.deviation = 0.85;
        if (n <= 64) continue;
        std::vector<Index> of_queries;  // spread over the keys, so that queries are not in the order of their windows
        for (Index i = 0; i < n; ++i) of_queries.push_back(i * 17 % (m - 2));
        shifts = integers(of_queries, {n, 1});
      }
      samples.push_back(attention_sample(form, inputs, [arrays, shifts](Tensors const& x) {
        AttentionInputs in;
        for (std::size_t i = 0; i < arrays.size(); ++i) in.*arrays[i] = x[i];
        if (shifts.defined()) in.centres = in.centres + shifts.to(x[0].dtype());
        return in;
      }));
    };
    add(causal, {2, 5, 6}, {2, 5, 6}, {2, 5, 4}, {near});
    add(everything, {2, 3, 4}, {2, 5, 4}, {2, 5, 2}, {relative, of_row});
    add(padded, {3, 4, 4}, {3, 4, 4}, {3, 4, 4}, {relative});
    add(causal, {2, 4, 4}, {2, 4, 2}, {2, 4, 1}, {relative}, 0, 1);
    add(short_queries, {2, 4, 4}, {2, 5, 4}, {2, 5, 4}, {relative});
    add(short_queries, {2, 4, 4}, {2, 5, 4}, {2, 5, 4}, {near}, 1.5);
    add(short_queries, {2, 4, 4}, {2, 5, 4}, {2, 5, 4}, {centres}, 1.7);
    add(later, {2, 3, 4}, {2, 5, 4}, {2, 5, 4}, {near, of_row}, 1.5);
    add(padded, {3, 4, 4}, {3, 4, 4}, {3, 4, 2}, {centres}, 1.7);
    add(causal, {1, 4, 4}, {1, 4, 4}, {1, 4, 2}, {relative, centres});
    add(everything, {1, 1, 2}, {1, 1, 2}, {1, 1, 2});
    add(causal, {1, 70, 2}, {1, 70, 2}, {1, 70, 2}, {}, 6);  // more than one block
    add(everything, {1, 70, 4}, {1, 12, 2}, {1, 12, 1}, {relative, centres}, 1.7, 1);
    add(sliding, {1, 35, 2}, {1, 35, 2}, {1, 35, 2}, {relative, near, of_row});  // more than one block of second derivatives
    add(far, {1, 70, 4}, {1, 12, 2}, {1, 12, 1}, {centres}, 1.7, 1);
    add(both_sides, {2, 4, 4}, {2, 5, 4}, {2, 5, 4}, {relative, of_row});
    add(both_sides, {2, 4, 4}, {2, 5, 4}, {2, 5, 2}, {near}, 1.5);
  }
  return samples;
}

ErrorCase attention_error(std::string message, AttentionForm form, AttentionInputs const& inputs) {
  form.heads = 2;
  return fails(std::move(message), fused_attention, form, inputs, nullptr);
}

Tensor const tokens = zeros({2, 3, 4});

Tensor reference_of_two_heads(Tensors const& x) { return attention_reference({.heads = 2, .visibility = {}}, {x[0], x[1], x[2]}); }

DeclaredChecks const attention_checks{{
    {"fused_attention",
     attention_samples(std::nullopt),
     {attention_error("attention: query [2, 3, 4], key [2, 3, 6], value [2, 3, 4] with 2 heads", {}, {tokens, zeros({2, 3, 6}), tokens}),
      attention_error("attention: biases by distance are [2, 3, 4], where [2, 5] is wanted", {},
                      {.query = tokens, .key = tokens, .value = tokens, .relative = tokens}),
      attention_error("attention: the dropout rate 1 is not in [0, 1)",
                      {.visibility = {}, .dropout = WeightDropout{1, Stream(1, "dropout")}}, {tokens, tokens, tokens})}},
    {"fused_attention with dropout", attention_samples(WeightDropout{0.3, Stream(1, "dropout")})},
    {"attention_reference", {several({{1, 2, 4}, {1, 3, 4}, {1, 3, 2}}, reference_of_two_heads)}},
}};

/// A scored hard read of given keys, so that finite differences do not change the choice.
std::vector<Sample> hard_samples(std::optional<WeightDropout> const& dropout) {
  std::vector<Sample> samples;
  auto const add = [&](Visibility const& visibility, double window, bool gaussian, Index groups, Index rows, Index keys,
                       std::vector<Index> const& chosen) {
    AttentionForm form{.heads = 2, .visibility = visibility, .scale = 0.7};
    form.window = window, form.gaussian = gaussian, form.deviation = 0.9, form.key_heads = groups, form.dropout = dropout;
    std::vector<Index> all;
    for (Index i = 0; i < 4 * rows; ++i) all.push_back(chosen[static_cast<std::size_t>(i) % chosen.size()]);
    form.hard = HardRead{.choice = HardRead::ChosenBy::sampled, .chosen = integers(all, {2, 2, rows}), .scored = true};
    std::vector<SampleInput> inputs{{{2, rows, 4}}, {{2, keys, 2 * groups}}, {{2, keys, 3 * groups}}};
    if (gaussian) inputs.push_back({{2, 2, rows, 1}, {1.35, 1.6}});
    samples.push_back(attention_sample(form, inputs, [gaussian](Tensors const& x) {
      return AttentionInputs{.query = x[0], .key = x[1], .value = x[2], .centres = gaussian ? x[3] : Tensor()};
    }));
  };
  Visibility const padded{.causal = false, .lengths = integers({4, 0}, {2}), .offset = 0};
  add(everything, 0, false, 2, 3, 5, {0, 3, 4, 1});
  add(causal, 0, false, 1, 5, 5, {0, 1, 0, 2, 4});
  add(padded, 0, false, 2, 3, 5, {0, 3, 4, 2, 0});  // some of the chosen keys are not visible
  add(everything, 1.7, true, 2, 4, 6, {1, 2, 0, 3});
  add(causal, 1, false, 2, 4, 4, {0, 1, 2, 3});
  add({.causal = true, .lengths = {}, .offset = 0, .query_lengths = {}, .sees = 3}, 0, false, 1, 35, 35, {0, 33, 1, 2, 7});
  return samples;
}

ErrorCase hard_error(char const* message, HardRead const& hard) {
  Tensor const one_sequence = zeros({1, 2, 4});
  return attention_error(message, {.visibility = {}, .hard = hard}, {one_sequence, one_sequence, one_sequence});
}

DeclaredChecks const hard_checks{{
    {"fused_attention with a hard read",
     hard_samples(std::nullopt),
     {hard_error("attention: 0 streams of a hard read for 1 sequences of 2 heads", {.choice = HardRead::ChosenBy::sampled}),
      hard_error("attention: a hard read of key 2, of 2", {.chosen = integers({0, 1, 2, 0}, {1, 2, 2})})}},
    {"fused_attention with a hard read and dropout", hard_samples(WeightDropout{0.3, Stream(1, "dropout")})},
}};

OperationCheck pair_sums_check(char const* name, std::shared_ptr<PairSum const> const& sum, bool weighted) {
  auto const sample = [=](Shape const& query, Shape const& key, Index heads, Index groups) {
    std::vector<Shape> shapes{query, key};
    if (weighted) shapes.push_back({heads, query[2] / heads});
    auto const weight = [](Tensors const& x) { return x.size() > 2 ? x[2] : Tensor(); };
    return several(
        shapes, [=](Tensors const& x) { return pair_sums(sum, x[0], x[1], weight(x), heads, groups); },
        [=](Tensors const& x) { return sum->composed(split_heads(x[0], heads), heads_of_groups(x[1], heads, groups), weight(x)); });
  };
  return {name,
          {sample({2, 5, 6}, {2, 7, 6}, 2, 2), sample({2, 3, 4}, {2, 5, 2}, 2, 1), sample({1, 1, 1}, {1, 1, 1}, 1, 1),
           sample({1, 67, 2}, {1, 35, 2}, 1, 1)}};
}

DeclaredChecks const pair_sums_checks{{
    pair_sums_check("pair_sums of tanh", additive_sum(), true),
    pair_sums_check("pair_sums with a weight", pair_sum([](auto q, auto k, auto w) { return w * sigmoid(q - k); }), true),
    pair_sums_check("pair_sums of two", pair_sum([](auto q, auto k) {
                      auto const apart = 1 + (q - k) * (q - k);
                      return log(apart) / sqrt(apart) + exp(-apart) * sin(k) + k * log1p(q * q) + tanh(q) * abs(k + 5.0);
                    }),
                    false),
}};

}  // namespace

}  // namespace heed::test
