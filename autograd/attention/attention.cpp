// Attention: heads, and the fused kernels beside their reference.

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/attention/additive_kernel.hpp"
#include "autograd/attention/kernel.hpp"
#include "autograd/attention/pair_formula.hpp"
#include "autograd/attention/row_statistics.hpp"
#include "autograd/attention/second.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/formula.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/loss.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/softmax.hpp"

namespace heed {

Tensor split_heads(Tensor const& x, std::int64_t heads) {
  if (x.rank() != 3 || heads < 1 || x.size(2) % heads != 0)
    throw Error(fmt::format("split_heads: {} does not split into {} heads", to_string(x.shape()), heads));
  return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

Tensor merge_heads(Tensor const& x) {
  if (x.rank() != 4) throw Error(fmt::format("merge_heads: wants [B, H, T, d], not {}", to_string(x.shape())));
  return reshape(permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}
static Declared<OperationCheck> const split_heads_check{
    {"split_heads",
     "[B, T, H·d] → [B, H, T, d]",
     {{{{{2, 3, 8}}}, [](std::vector<Tensor> const& x) { return split_heads(x[0], 4); }}},
     {{[] {
         split_heads(Tensor::zeros({2, 3, 8}, DType::float64), 3);
       },
       "split_heads: [2, 3, 8] does not split into 3 heads"}}}};
static Declared<OperationCheck> const merge_heads_check{
    {"merge_heads",
     "[B, H, T, d] → [B, T, H·d]",
     {{{{{2, 4, 3, 2}}}, [](std::vector<Tensor> const& x) { return merge_heads(x[0]); }}},
     {{[] {
         merge_heads(Tensor::zeros({2, 3}, DType::float64));
       },
       "merge_heads: wants [B, H, T, d], not [2, 3]"}}}};

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
static Declared<OperationCheck> const relative_bias_check{
    {"relative_bias",
     "r_{j − i + n − 1}",
     {{{{{2, 6}}}, [](std::vector<Tensor> const& x) { return relative_bias(x[0], 3, 4); }}},
     {{[] {
         relative_bias(Tensor::zeros({2, 5}, DType::float64), 3, 4);
       },
       "relative_bias: [2, 5] for 3 queries and 4 keys: wants [H, 6]"}}}};

namespace {

struct AdditiveSum : PairSum {
  std::unique_ptr<kernels::HeadSum<float>> of_head(kernels::PairRows<float> const& rows) const override {
    return std::make_unique<kernels::AdditiveHead<float>>(rows);
  }
  std::unique_ptr<kernels::HeadSum<double>> of_head(kernels::PairRows<double> const& rows) const override {
    return std::make_unique<kernels::AdditiveHead<double>>(rows);
  }
  Tensor composed(Tensor const& query, Tensor const& key, Tensor const& weight) const override {
    Tensor const hidden = tanh(unsqueeze(query, 3) + unsqueeze(key, 2));  // [B, H, n, m, d]
    return squeeze(matmul(hidden, reshape(weight, {weight.size(0), 1, weight.size(1), 1})), -1);
  }
};

}  // namespace

Tensor heads_of_groups(Tensor const& x, std::int64_t heads, std::int64_t groups) {
  Tensor const of_groups = split_heads(x, groups);
  if (groups == heads) return of_groups;
  std::int64_t const batch = x.size(0), rows = x.size(1), width = x.size(2) / groups;
  return reshape(expand(unsqueeze(of_groups, 2), {batch, groups, heads / groups, rows, width}), {batch, heads, rows, width});
}

namespace {

/// [H, 1, 1] of one column of [H, ·]; undefined where there is none.
Tensor column(Tensor const& x, std::int64_t at) {
  return x.defined() && at < x.size(1) ? reshape(slice(x, 1, at, at + 1), {-1, 1, 1}) : Tensor();
}

}  // namespace

Tensor near_bias(Tensor const& near, std::int64_t offset, std::int64_t keys) {
  std::int64_t const batch = near.size(0), queries = near.size(1), heads = near.size(2), reach = near.size(3) / 2;
  std::vector<std::int64_t> row;
  for (std::int64_t i = offset; i < offset + queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) row.push_back(std::clamp(j - i, -reach, reach) + reach);
  }
  std::vector<std::int64_t> index;
  for (std::int64_t copy = 0; copy < batch * heads; ++copy) index.insert(index.end(), row.begin(), row.end());
  return gather(permute(near, {0, 2, 1, 3}), -1, Tensor::of(index, {batch, heads, queries, keys}));
}
static Declared<OperationCheck> const near_bias_check{
    {"near_bias", "near_i,clamp(j−i, −c, c)", {{{{{2, 3, 2, 5}}}, [](std::vector<Tensor> const& x) { return near_bias(x[0], 1, 6); }}}}};

std::shared_ptr<PairSum const> additive_sum() {
  static auto const instance = std::make_shared<AdditiveSum>();
  return instance;
}

Tensor gaussian_around(Tensor const& centres, double deviation, std::int64_t keys) {
  Tensor const distance = Tensor::arange(keys, centres.dtype()) - centres;
  return exp(scale(distance * distance, -1 / (2 * deviation * deviation)));
}
static Declared<OperationCheck> const gaussian_around_check{
    {"gaussian_around", "exp(−(j − centre)²/(2 deviation²))", {{{{{2, 2, 3, 1}, 0, 4}}, [](std::vector<Tensor> const& x) {
                                                                  return gaussian_around(x[0], 1.5, 5);
                                                                }}}}};

Tensor composed_sums(AttentionForm const& form, AttentionInputs const& in) {
  Tensor const q = split_heads(in.query, form.heads), k = heads_of_groups(in.key, form.heads, form.groups());
  return form.sum ? form.sum->composed(q, k, in.weight) : scale(matmul(q, k, false, true), form.scale);
}

Tensor composed_scores(AttentionForm const& form, AttentionInputs const& in, Tensor e) {
  std::int64_t const queries = e.size(2), keys = e.size(3);
  if (form.finish) {
    auto const places = [&](std::int64_t count, Shape const& shape) { return Tensor::arange(count, e.dtype()).viewed(shape); };
    FinishInputs at{places(queries, {queries, 1}) - places(keys, {1, keys}) + static_cast<double>(form.visibility.offset),
                    in.of_query.defined() ? unsqueeze(in.of_query, 3) : Tensor(),
                    in.of_key.defined() ? unsqueeze(in.of_key, 2) : Tensor(),
                    column(in.parameter, 0),
                    column(in.parameter, 1),
                    std::sqrt(static_cast<double>(in.query.size(2) / form.heads))};
    e = form.finish->composed(e, at);
  }
  if (form.softcap) e = scale(tanh(scale(e, 1 / *form.softcap)), *form.softcap);
  if (in.relative.defined()) e = e + relative_bias(in.relative, queries, keys);
  if (in.near.defined()) e = e + near_bias(in.near, form.visibility.offset, keys);
  if (in.of_row.defined()) e = e + (unsqueeze(in.of_row, 3) + unsqueeze(in.of_column, 2));
  return e;
}

namespace {

/// 1 at the keys of each row's range: what it sees of its window.
Tensor range_mask(AttentionForm const& form, AttentionInputs const& in, Tensor const& scores) {
  std::int64_t const queries = scores.size(2), keys = scores.size(3);
  Visibility const& sees = form.visibility;
  if (form.window <= 0) return sees.mask(queries, keys, scores.dtype());
  Tensor places = in.centres.detach();
  if (!in.centres.defined())
    places = reshape(Tensor::arange(queries, scores.dtype()) + static_cast<double>(sees.offset), {1, 1, queries, 1});
  return window_mask(places, form.window, sees, keys);
}

}  // namespace

Tensor composed_rows(AttentionForm const& form, AttentionInputs const& in, Tensor const& scores, Tensor const& weights) {
  return attention_rows(scores, weights, range_mask(form, in, scores), form.visibility.offset);
}

Tensor composed_weights(AttentionForm const& form, AttentionInputs const& in, Tensor const& scores) {
  std::int64_t const queries = scores.size(2), keys = scores.size(3);
  Visibility const& sees = form.visibility;
  Tensor const mask = range_mask(form, in, scores);
  Tensor const weights =
      form.align ? form.align->composed(scores, mask, sees.counts(queries, keys, scores.dtype()), in.align) : masked_softmax(scores, mask);
  return form.gaussian ? weights * gaussian_around(in.centres, form.deviation, keys) : weights;
}

Tensor composed_result(AttentionForm const& form, Tensor const& value, Tensor const& weights, Tensor const& factors) {
  ReadWeights const r = form.hard ? composed_read(*form.hard, weights, form.visibility.offset) : ReadWeights{weights, {}, {}};
  Tensor const read = factors.defined() ? r.read * factors : r.read;
  Tensor const context = merge_heads(matmul(read, heads_of_groups(value, form.heads, form.groups())));
  if (!r.probability.defined()) return context;
  return concatenate({context, permute(r.probability, {0, 2, 1}), permute(r.entropy, {0, 2, 1})}, 2);
}

Tensor attention_reference(AttentionForm const& form, AttentionInputs const& in) {
  Tensor const weights = composed_weights(form, in, composed_scores(form, in, composed_sums(form, in)));
  Tensor factors;
  if (form.dropout) factors = dropout(Tensor::ones(weights.shape(), weights.dtype()), form.dropout->rate, form.dropout->stream);
  return composed_result(form, in.value, weights, factors);
}

namespace {

kernels::AttentionCall checked_call(AttentionForm const& form, AttentionInputs const& in) {
  require_same_real("attention", in.query, in.key);
  require_same_real("attention", in.query, in.value);
  std::int64_t const heads = form.heads, groups = form.groups();
  Tensor const &query = in.query, &key = in.key, &value = in.value;
  bool const fits = heads > 0 && groups > 0 && heads % groups == 0 && query.rank() == 3 && key.rank() == 3 && value.rank() == 3 &&
                    query.size(0) == key.size(0) && key.size(0) == value.size(0) && key.size(1) == value.size(1) &&
                    query.size(2) % heads == 0 && key.size(2) % groups == 0 && query.size(2) / heads == key.size(2) / groups &&
                    value.size(2) % groups == 0;
  if (!fits) {
    throw Error(fmt::format("attention: query {}, key {}, value {} with {} heads{}: wants [B, n, H·d], [B, m, G·d], [B, m, G·d_v]",
                            to_string(query.shape()), to_string(key.shape()), to_string(value.shape()), heads,
                            groups == heads ? "" : fmt::format(" in {} groups", groups)));
  }
  for (Tensor const& lengths : {form.visibility.lengths, form.visibility.query_lengths}) {
    if (!lengths.defined() || (lengths.dtype() == DType::int64 && lengths.shape() == Shape{query.size(0)})) continue;
    throw Error(
        fmt::format("attention: lengths {} {} for {} sequences", to_string(lengths.dtype()), to_string(lengths.shape()), query.size(0)));
  }
  if (form.dropout && !(form.dropout->rate >= 0 && form.dropout->rate < 1))
    throw Error(fmt::format("attention: the dropout rate {} is not in [0, 1)", form.dropout->rate));
  kernels::AttentionCall const call{form, in, query.size(0), query.size(1), key.size(1), query.size(2) / heads, value.size(2) / groups};
  auto const expect = [](char const* what, Tensor const& given, Shape const& shape) {
    if (given.defined() && given.shape() != shape)
      throw Error(fmt::format("attention: {} are {}, where {} is wanted", what, to_string(given.shape()), to_string(shape)));
  };
  std::int64_t const batch = call.batch, n = call.queries, m = call.keys;
  expect("the score's weights", in.weight, {heads, call.width});
  if (in.parameter.defined()) expect("the score's parameters", in.parameter, {heads, in.parameter.elements() == 2 * heads ? 2 : 1});
  expect("numbers of queries", in.of_query, {batch, heads, n});
  expect("numbers of keys", in.of_key, {batch, heads, m});
  expect("biases by distance", in.relative, {heads, n + m - 1});
  if (in.near.defined())
    expect("biases by near distance", in.near, {batch, n, heads, in.near.elements() / std::max<std::int64_t>(1, batch * heads * n)});
  expect("biases of rows", in.of_row, {batch, heads, n});
  expect("biases of columns", in.of_column, {batch, heads, m});
  expect("centres", in.centres, {batch, heads, n, 1});
  expect("the align's parameters", in.align, {heads});
  if (form.gaussian && !in.centres.defined()) throw Error("attention: a Gaussian wants centres");
  if (!form.hard) return call;
  expect("choices of a hard read", form.hard->chosen, {batch, heads, n});
  if (form.hard->chosen.defined()) {
    for (std::int64_t const j : form.hard->chosen.data<std::int64_t>())
      if (j < 0 || j >= std::max<std::int64_t>(m, 1)) throw Error(fmt::format("attention: a hard read of key {}, of {}", j, m));
  }
  auto const choice = form.hard->choice;
  bool const draws = choice == HardRead::ChosenBy::gumbel || (choice != HardRead::ChosenBy::largest && !form.hard->chosen.defined());
  if (draws && std::ssize(form.hard->streams) != batch * heads)
    throw Error(fmt::format("attention: {} streams of a hard read for {} sequences of {} heads", form.hard->streams.size(), batch, heads));
  return call;
}

}  // namespace

Tensor fused_attention(AttentionForm const& form, AttentionInputs const& given, Tensor* rows) {
  AttentionInputs named = given;
  kernels::AttentionCall const call = checked_call(form, named);
  DType const dtype = given.query.dtype();
  kernels::AttentionOutput out{Tensor({call.batch, call.queries, form.heads * call.value_width + form.scores_of_choice()}, dtype),
                               Tensor({call.batch, form.heads, call.queries, kernels::kept_numbers}, dtype)};
  if (form.hard) out.chosen = Tensor({call.batch, form.heads, call.queries}, DType::int64);
  if (rows != nullptr) *rows = Tensor({call.batch, form.heads, call.queries, row_statistics}, DType::float64);
  out.rows = rows;
  kernels::with_real(dtype, [&](auto type) { kernels::attention_forward<decltype(type)>(call, out); });
  // The arrays that are there become the operation's inputs; `slots` says which is which.
  std::vector<Tensor> inputs;
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < AttentionInputs::count; ++i) {
    if (!named.all()[i]->defined()) continue;
    inputs.push_back(*named.all()[i]);
    slots.push_back(i);
  }
  bool const wanted = anomaly_mode() || (recording() && std::ranges::any_of(inputs, [](Tensor const& x) { return x.requires_grad(); }));
  if (!wanted) return out.context;
  AttentionForm known = form;  // a hard read's derivatives are at the key that was chosen
  if (known.hard) known.hard->chosen = out.chosen;
  auto const arranged = [slots](std::vector<Tensor> const& tensors) {
    AttentionInputs result;
    for (std::size_t i = 0; i < slots.size(); ++i) *result.all()[slots[i]] = tensors[i];
    return result;
  };
  auto const listed = [slots](AttentionInputs all) {
    std::vector<Tensor> tensors;
    for (std::size_t const slot : slots) tensors.push_back(*all.all()[slot]);
    return tensors;
  };
  return record_fused(
      "attention", std::move(inputs), std::move(out.context), keep_inputs,
      [known, kept = out.kept, arranged, listed](BackwardContext const& s) {
        bool const over_queries = s.may_reuse(0) && !known.sum;
        kernels::AttentionCall const again = checked_call(known, arranged(s.inputs));
        AttentionInputs g;
        kernels::with_real(s.dy.dtype(),
                           [&](auto type) { g = kernels::attention_backward<decltype(type)>(again, kept, s.dy, over_queries); });
        return listed(g);
      },
      [known, arranged](std::vector<Tensor> const& tensors) { return attention_reference(known, arranged(tensors)); },
      [known, arranged, listed](BackwardContext const& s, std::vector<Tensor> const& u) {
        AttentionSecond const second = attention_second(known, arranged(s.inputs), s.dy, arranged(u));
        std::vector<Tensor> derivatives = listed(second.inputs);
        derivatives.push_back(second.dy);
        return derivatives;
      });
}

}  // namespace heed
