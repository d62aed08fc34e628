// Attention: who sees whom, heads, and the fused kernels beside their reference.

#include "autograd/kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/kernels/dispatch.hpp"
#include "autograd/ops/formula.hpp"

namespace heed {

std::int64_t Visibility::count(std::int64_t b, std::int64_t i, std::int64_t keys) const {
  auto const of = [b](Tensor const& all) { return all.data<std::int64_t>()[static_cast<std::size_t>(b)]; };
  if (query_lengths.defined() && i >= of(query_lengths)) return 0;
  std::int64_t const length = lengths.defined() ? of(lengths) : keys;
  return std::clamp<std::int64_t>(causal ? std::min(length, offset + i + 1) : length, 0, keys);
}

std::int64_t Visibility::sequences() const {
  Tensor const& given = lengths.defined() ? lengths : query_lengths;
  return given.defined() ? given.elements() : 1;
}

Tensor Visibility::mask(std::int64_t queries, std::int64_t keys, DType dtype) const {
  std::int64_t const sequences = this->sequences();
  Tensor mask = Tensor::zeros({sequences, 1, queries, keys}, dtype);
  kernels::with_real(dtype, [&](auto type) {
    auto* row = mask.mutable_data<decltype(type)>().data();
    for (std::int64_t b = 0; b < sequences; ++b) {
      for (std::int64_t i = 0; i < queries; ++i, row += keys) std::fill_n(row, count(b, i, keys), decltype(type)(1));
    }
  });
  return mask;
}

Tensor Visibility::counts(std::int64_t queries, std::int64_t keys, DType dtype) const {
  std::int64_t const sequences = this->sequences();
  std::vector<double> values;
  for (std::int64_t b = 0; b < sequences; ++b) {
    for (std::int64_t i = 0; i < queries; ++i) values.push_back(static_cast<double>(count(b, i, keys)));
  }
  return Tensor::of(values, {sequences, 1, queries, 1}, dtype);
}

Tensor split_heads(Tensor const& x, std::int64_t heads) {
  if (x.rank() != 3 || heads < 1 || x.size(2) % heads != 0)
    throw Error(fmt::format("split_heads: {} does not split into {} heads", to_string(x.shape()), heads));
  return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

Tensor merge_heads(Tensor const& x) {
  if (x.rank() != 4) throw Error(fmt::format("merge_heads: wants [B, H, T, d], not {}", to_string(x.shape())));
  return reshape(permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}
static Registered const split_heads_check{{"split_heads",
                                           "[B, T, H·d] → [B, H, T, d]",
                                           {{{{{2, 3, 8}}}, [](std::vector<Tensor> const& x) { return split_heads(x[0], 4); }}},
                                           {{[] {
                                               split_heads(Tensor::zeros({2, 3, 8}, DType::float64), 3);
                                             },
                                             "split_heads: [2, 3, 8] does not split into 3 heads"}}}};
static Registered const merge_heads_check{{"merge_heads",
                                           "[B, H, T, d] → [B, T, H·d]",
                                           {{{{{2, 4, 3, 2}}}, [](std::vector<Tensor> const& x) { return merge_heads(x[0]); }}},
                                           {{[] {
                                               merge_heads(Tensor::zeros({2, 3}, DType::float64));
                                             },
                                             "merge_heads: wants [B, H, T, d], not [2, 3]"}}}};

Tensor window_mask(Tensor const& centres, double reach, Visibility const& visibility, std::int64_t keys) {
  std::int64_t const batch = std::max(centres.size(0), visibility.sequences());
  std::int64_t const heads = centres.size(1);
  std::int64_t const queries = centres.size(2);
  Tensor mask = Tensor::zeros({batch, heads, queries, keys}, centres.dtype());
  kernels::with_real(mask.dtype(), [&](auto type) {
    auto* row = mask.mutable_data<decltype(type)>().data();
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t at = 0; at < heads * queries; ++at, row += keys) {
        double const centre = centres.at((centres.size(0) == 1 ? 0 : b) * heads * queries + at);
        auto const window = kernels::window_around(centre, reach, visibility.count(b, at % queries, keys));
        std::fill(row + window.first, row + window.last, decltype(type)(1));
      }
    }
  });
  return mask;
}

Tensor relative_bias(Tensor const& relative, std::int64_t queries, std::int64_t keys) {
  if (relative.rank() != 2 || relative.size(1) != queries + keys - 1) {
    throw Error(fmt::format("relative_bias: {} for {} queries and {} keys: wants [H, {}]", to_string(relative.shape()), queries, keys,
                            queries + keys - 1));
  }
  std::vector<std::int64_t> index;
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) index.push_back(j - i + queries - 1);
  }
  return unsqueeze(permute(embedding(transpose(relative), Tensor::of(index, {queries, keys})), {2, 0, 1}), 0);
}
static Registered const relative_bias_check{{"relative_bias",
                                             "r_{j − i + n − 1}",
                                             {{{{{2, 6}}}, [](std::vector<Tensor> const& x) { return relative_bias(x[0], 3, 4); }}},
                                             {{[] {
                                                 relative_bias(Tensor::zeros({2, 5}, DType::float64), 3, 4);
                                               },
                                               "relative_bias: [2, 5] for 3 queries and 4 keys: wants [H, 6]"}}}};

Tensor additive_scores(Tensor const& query, Tensor const& key, Tensor const& vector) {
  Tensor const hidden = tanh(unsqueeze(query, 3) + unsqueeze(key, 2));  // [B, H, n, m, d]
  return squeeze(matmul(hidden, reshape(vector, {vector.size(0), 1, vector.size(1), 1})), -1);
}
static Registered const additive_scores_check{
    {"additive_scores", "vᵀ tanh(q_i + k_j)", {{{{{2, 2, 3, 4}}, {{2, 2, 5, 4}}, {{2, 4}}}, [](std::vector<Tensor> const& x) {
                                                  return additive_scores(x[0], x[1], x[2]);
                                                }}}}};

namespace {

using Score = AttentionForm::Score;

/// ‖x‖ over the last axis, kept; the gradient at the zero vector is 0.
Tensor length(Tensor const& x) {
  Tensor const square = sum(x * x, {-1}, true);
  Tensor const some = square.detach() > 0;
  return some * sqrt(where(some, square, Tensor::ones({}, x.dtype())));
}

Tensor reference_scores(AttentionForm const& form, Tensor const& q, Tensor const& k, Tensor const& parameter) {
  switch (form.score) {
    case Score::dot:
      return scale(matmul(q, k, false, true), form.scale);
    case Score::cosine:
      return cosine_scores(q, k, parameter);
    case Score::additive:
      break;
  }
  return additive_scores(q, k, parameter);
}

}  // namespace

Tensor cosine_scores(Tensor const& query, Tensor const& key, Tensor const& sharpness) {
  Tensor const lengths = matmul(length(query), length(key), false, true);  // [B, H, n, m]
  return reshape(sharpness, {-1, 1, 1}) * matmul(query, key, false, true) / (lengths + kernels::cosine_epsilon);
}
static Registered const cosine_scores_check{{"cosine_scores",
                                             "β q_i·k_j/(‖q_i‖ ‖k_j‖ + 1e-8)",
                                             {{{{{2, 2, 3, 4}, 0.5, 2}, {{2, 2, 5, 4}, 0.5, 2}, {{2}}},
                                               [](std::vector<Tensor> const& x) { return cosine_scores(x[0], x[1], x[2]); }}}}};

Tensor gaussian_around(Tensor const& centres, double deviation, std::int64_t keys) {
  Tensor const distance = Tensor::arange(keys, centres.dtype()) - centres;
  return exp(scale(distance * distance, -1 / (2 * deviation * deviation)));
}
static Registered const gaussian_around_check{
    {"gaussian_around", "exp(−(j − centre)²/(2 deviation²))", {{{{{2, 2, 3, 1}, 0, 4}}, [](std::vector<Tensor> const& x) {
                                                                  return gaussian_around(x[0], 1.5, 5);
                                                                }}}}};

namespace {

kernels::AttentionCall checked_call(AttentionForm const& form, Tensor const& query, Tensor const& key, Tensor const& value,
                                    Tensor const& parameter, Tensor const& relative, Tensor const& centres) {
  require_same_real("attention", query, key);
  require_same_real("attention", query, value);
  std::int64_t const heads = form.heads;
  bool const fits = query.rank() == 3 && key.rank() == 3 && value.rank() == 3 && heads > 0 && query.size(0) == key.size(0) &&
                    key.size(0) == value.size(0) && key.size(1) == value.size(1) && query.size(2) == key.size(2) &&
                    key.size(2) % heads == 0 && value.size(2) % heads == 0;
  if (!fits) {
    throw Error(fmt::format("attention: query {}, key {}, value {} with {} heads: wants [B, n, H·d], [B, m, H·d], [B, m, H·d_v]",
                            to_string(query.shape()), to_string(key.shape()), to_string(value.shape()), heads));
  }
  for (Tensor const& lengths : {form.visibility.lengths, form.visibility.query_lengths}) {
    if (!lengths.defined() || (lengths.dtype() == DType::int64 && lengths.shape() == Shape{query.size(0)})) continue;
    throw Error(
        fmt::format("attention: lengths {} {} for {} sequences", to_string(lengths.dtype()), to_string(lengths.shape()), query.size(0)));
  }
  if (form.dropout && !(form.dropout->rate >= 0 && form.dropout->rate < 1))
    throw Error(fmt::format("attention: the dropout rate {} is not in [0, 1)", form.dropout->rate));
  kernels::AttentionCall call{form,  query.size(0), query.size(1), key.size(1), query.size(2) / heads, value.size(2) / heads, query, key,
                              value, parameter,     relative,      centres};
  auto const expect = [](char const* what, Tensor const& given, bool wanted, Shape const& shape) {
    if (given.defined() ? !wanted || given.shape() != shape : wanted && shape.rank() > 0) {
      throw Error(fmt::format("attention: {} {}, where {} is wanted", what, given.defined() ? to_string(given.shape()) : "missing",
                              wanted ? to_string(shape) : "none"));
    }
  };
  expect("the score's parameter is", parameter, form.score != Score::dot,
         form.score == Score::additive ? Shape{heads, call.width} : Shape{heads});
  if (relative.defined()) expect("the relative bias is", relative, true, {heads, call.queries + call.keys - 1});
  if (centres.defined() || form.gaussian) expect("centres are", centres, true, {call.batch, heads, call.queries, 1});
  return call;
}

}  // namespace

Tensor attention_reference(AttentionForm const& form, Tensor const& query, Tensor const& key, Tensor const& value, Tensor const& parameter,
                           Tensor const& relative, Tensor const& centres) {
  std::int64_t const queries = query.size(1);
  std::int64_t const keys = key.size(1);
  Tensor scores = reference_scores(form, split_heads(query, form.heads), split_heads(key, form.heads), parameter);
  if (relative.defined()) scores = scores + relative_bias(relative, queries, keys);
  Tensor places = centres.detach();
  if (!centres.defined())
    places = reshape(Tensor::arange(queries, scores.dtype()) + static_cast<double>(form.visibility.offset), {1, 1, queries, 1});
  Tensor const mask =
      form.window > 0 ? window_mask(places, form.window, form.visibility, keys) : form.visibility.mask(queries, keys, scores.dtype());
  Tensor weights = masked_softmax(scores, mask);
  if (form.gaussian) weights = weights * gaussian_around(centres, form.deviation, keys);
  if (form.dropout) weights = dropout(weights, form.dropout->rate, form.dropout->stream);
  return merge_heads(matmul(weights, split_heads(value, form.heads)));
}

Tensor fused_attention(AttentionForm const& form, Tensor const& query, Tensor const& key, Tensor const& value, Tensor const& parameter,
                       Tensor const& relative, Tensor const& centres) {
  kernels::AttentionCall const call = checked_call(form, query, key, value, parameter, relative, centres);
  Tensor context({call.batch, call.queries, form.heads * call.value_width}, query.dtype());
  Tensor log_sum_exp({call.batch, form.heads, call.queries}, query.dtype());
  kernels::with_real(query.dtype(), [&](auto type) { kernels::attention_forward<decltype(type)>(call, context, log_sum_exp); });
  if (!records(query, key, value, parameter, relative, centres)) return context;
  // The arrays that are there become the operation's inputs; `slots` says which is which.
  std::vector<Tensor> inputs;
  std::vector<std::size_t> slots;
  std::vector<Tensor> const all{query, key, value, parameter, relative, centres};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].defined()) continue;
    inputs.push_back(all[i]);
    slots.push_back(i);
  }
  auto const arranged = [slots](std::vector<Tensor> const& given) {
    std::vector<Tensor> result(6);
    for (std::size_t i = 0; i < slots.size(); ++i) result[slots[i]] = given[i];
    return result;
  };
  return record_fused(
      "attention", std::move(inputs), std::move(context), keep_inputs,
      [form, log_sum_exp, slots, arranged](Step const& s) {
        std::vector<Tensor> const in = arranged(s.inputs);
        kernels::AttentionCall const again = checked_call(form, in[0], in[1], in[2], in[3], in[4], in[5]);
        kernels::AttentionGradients g;
        kernels::with_real(s.dy.dtype(), [&](auto type) { g = kernels::attention_backward<decltype(type)>(again, log_sum_exp, s.dy); });
        std::vector<Tensor> const found{g.query, g.key, g.value, g.parameter, g.relative, g.centres};
        std::vector<Tensor> gradients;
        for (std::size_t const slot : slots) gradients.push_back(found[slot]);
        return gradients;
      },
      [form, arranged](std::vector<Tensor> const& given) {
        std::vector<Tensor> const in = arranged(given);
        return attention_reference(form, in[0], in[1], in[2], in[3], in[4], in[5]);
      });
}

namespace {

/// Samples of one form: what is drawn are query, key, value and the parts that the form wants.
/// `spread`: centres all over the keys, so that the queries are not in the order of their windows.
Sample attention_sample(AttentionForm const& form, Shape query, Shape key, Shape value, bool relative = false, bool centred = false,
                        bool spread = false) {
  std::int64_t const heads = form.heads;
  double const least = form.score == Score::cosine ? 0.5 : -2;  // away from the zero vector, where the cosine has no derivative
  std::vector<SampleInput> inputs{{query, least, 2}, {key, least, 2}, {value}};
  if (form.score == Score::additive) inputs.push_back({{heads, query[2] / heads}});
  if (form.score == Score::cosine) inputs.push_back({{heads}, 1, 5});
  if (relative) inputs.push_back({{heads, query[1] + key[1] - 1}});
  // Far enough from the next half that no key enters or leaves a window of 1.7 within a finite difference.
  if (centred) inputs.push_back({{query[0], heads, query[1], 1}, 1.35, 1.6});
  auto const arranged = [=](std::vector<Tensor> const& x) {
    std::vector<Tensor> in(x.begin(), x.begin() + 3);
    std::size_t next = 3;
    in.push_back(form.score != Score::dot ? x[next++] : Tensor());
    in.push_back(relative ? x[next++] : Tensor());
    in.push_back(centred ? x[next++] : Tensor());
    if (spread) {
      std::vector<std::int64_t> shifts;
      for (std::int64_t i = 0; i < query[1]; ++i) shifts.push_back(i * 17 % (key[1] - 2));
      in.back() = in.back() + Tensor::of(shifts, {query[1], 1}).to(x.front().dtype());
    }
    return in;
  };
  return {std::move(inputs),
          [=](std::vector<Tensor> const& x) {
            auto const in = arranged(x);
            return fused_attention(form, in[0], in[1], in[2], in[3], in[4], in[5]);
          },
          [=](std::vector<Tensor> const& x) {
            auto const in = arranged(x);
            return attention_reference(form, in[0], in[1], in[2], in[3], in[4], in[5]);
          }};
}

std::vector<Sample> attention_samples(std::optional<WeightDropout> const& dropout = std::nullopt) {
  Visibility const causal{.causal = true, .lengths = {}, .offset = 0};
  Visibility const padded{.causal = true, .lengths = Tensor::of(std::vector<std::int64_t>{4, 2, 0}, {3}), .offset = 0};
  Visibility const later{.causal = true, .lengths = {}, .offset = 2};
  auto const lengths = [](std::vector<std::int64_t> const& values) { return Tensor::of(values, {std::ssize(values)}); };
  Visibility const short_queries{.causal = false, .lengths = lengths({5, 4}), .offset = 2, .query_lengths = lengths({3, 1})};
  std::vector<Sample> samples;
  for (Score const score : {Score::dot, Score::cosine, Score::additive}) {
    AttentionForm form{.heads = 2, .visibility = causal, .score = score, .scale = 0.5};
    form.dropout = dropout;
    auto const with = [&](Visibility const& visibility, double window = 0, bool gaussian = false) {
      AttentionForm changed = form;
      changed.visibility = visibility;
      changed.window = window;
      changed.gaussian = gaussian;
      changed.deviation = 0.85;
      return changed;
    };
    samples.push_back(attention_sample(form, {2, 5, 6}, {2, 5, 6}, {2, 5, 4}));
    samples.push_back(attention_sample(with({}), {2, 3, 4}, {2, 5, 4}, {2, 5, 2}, true));
    samples.push_back(attention_sample(with(padded), {3, 4, 4}, {3, 4, 4}, {3, 4, 4}, true));
    samples.push_back(attention_sample(with(short_queries), {2, 4, 4}, {2, 5, 4}, {2, 5, 4}, true));
    samples.push_back(attention_sample(with(short_queries, 1.5), {2, 4, 4}, {2, 5, 4}, {2, 5, 4}));
    samples.push_back(attention_sample(with(short_queries, 1.7, true), {2, 4, 4}, {2, 5, 4}, {2, 5, 4}, false, true));
    samples.push_back(attention_sample(with(later, 1.5), {2, 3, 4}, {2, 5, 4}, {2, 5, 4}));
    samples.push_back(attention_sample(with(padded, 1.7, true), {3, 4, 4}, {3, 4, 4}, {3, 4, 2}, false, true));
    samples.push_back(attention_sample(with(causal, 0, true), {1, 4, 4}, {1, 4, 4}, {1, 4, 2}, true, true));
    samples.push_back(attention_sample(with({}), {1, 1, 2}, {1, 1, 2}, {1, 1, 2}));
    samples.push_back(attention_sample(with(causal, 6), {1, 70, 2}, {1, 70, 2}, {1, 70, 2}));  // more than one block
    samples.push_back(attention_sample(with({}, 1.7, true), {1, 70, 4}, {1, 12, 4}, {1, 12, 2}, true, true, true));
  }
  return samples;
}

}  // namespace

static Registered const attention_check{
    {"fused_attention",
     "Σ_j softmax_j(e_ij) v_j over visible keys in a window",
     attention_samples(),
     {{[] {
         Tensor const x = Tensor::zeros({2, 3, 4}, DType::float64);
         fused_attention({.heads = 2, .visibility = {}}, x, Tensor::zeros({2, 3, 6}, DType::float64), x);
       },
       "attention: query [2, 3, 4], key [2, 3, 6], value [2, 3, 4] with 2 heads"},
      {[] {
         Tensor const x = Tensor::zeros({2, 3, 4}, DType::float64);
         fused_attention({.heads = 2, .visibility = {}, .score = Score::additive}, x, x, x);
       },
       "attention: the score's parameter is missing, where [2, 2] is wanted"},
      {[] {
         Tensor const x = Tensor::zeros({2, 3, 4}, DType::float64);
         fused_attention({.heads = 2, .visibility = {}, .dropout = WeightDropout{1, Stream(1, "dropout")}}, x, x, x);
       },
       "attention: the dropout rate 1 is not in [0, 1)"}}}};
static Registered const attention_dropout_check{
    {"fused_attention with dropout", "Σ_j D_ij softmax_j(e_ij) v_j", attention_samples(WeightDropout{0.3, Stream(1, "dropout")}), {}}};

static Registered const reference_check{
    {"attention_reference", "the same, composed", {{{{{1, 2, 4}}, {{1, 3, 4}}, {{1, 3, 2}}}, [](std::vector<Tensor> const& x) {
                                                      return attention_reference({.heads = 2, .visibility = {}}, x[0], x[1], x[2]);
                                                    }}}}};
static Registered const scaled_dot_attention_check{
    {"scaled_dot_attention", "Σ_j softmax_j(s q_i·k_j) v_j", {{{{{1, 2, 4}}, {{1, 3, 4}}, {{1, 3, 2}}}, [](std::vector<Tensor> const& x) {
                                                                 return scaled_dot_attention(x[0], x[1], x[2], 2, 0.5, {});
                                                               }}}}};
static Registered const window_mask_check{
    {"window_mask",
     "1 where |j − centre| ≤ reach",
     {{{{{2, 2, 3, 1}, 0, 4}}, [](std::vector<Tensor> const& x) { return window_mask(x[0].detach(), 1.5, {}, 4); }}},
     {},
     false}};

}  // namespace heed
