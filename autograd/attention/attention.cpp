// Attention: heads, and the fused kernels with their reference.

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/kernel.hpp"
#include "autograd/attention/row_statistics.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/shape.hpp"

namespace heed {

Tensor split_heads(Tensor const& x, Index heads) {
  if (x.rank() != 3 || heads < 1 || x.size(2) % heads != 0)
    throw Error(fmt::format("split_heads: {} does not split into {} heads", to_string(x.shape()), heads));
  return permute(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

Tensor merge_heads(Tensor const& x) {
  if (x.rank() != 4) throw Error(fmt::format("merge_heads: wants [B, H, T, d], not {}", to_string(x.shape())));
  return reshape(permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

Tensor relative_bias(Tensor const& relative, Index queries, Index keys) {
  if (relative.rank() != 2 || relative.size(1) != queries + keys - 1) {
    throw Error(fmt::format("relative_bias: {} for {} queries and {} keys: wants [H, {}]", to_string(relative.shape()), queries, keys,
                            queries + keys - 1));
  }
  Tensor index({queries, keys}, DType::int64);
  auto number = index.mutable_data<std::int64_t>().begin();
  for (Index i = 0; i < queries; ++i) {
    for (Index j = 0; j < keys; ++j) *number++ = j - i + queries - 1;
  }
  return unsqueeze(permute(embedding(transpose(relative), index), {2, 0, 1}), 0);
}

namespace {

kernels::AttentionCall checked_call(AttentionForm const& form, AttentionInputs const& in) {
  for (Tensor const* const x : pointers_to(in))
    if (x->defined()) require_same_real("attention", in.query, *x);
  kernels::AttentionCall const call{extents_of(in, form.heads, form.groups()), form, in};
  for (Tensor const& lengths : {form.visibility.lengths, form.visibility.query_lengths}) {
    if (!lengths.defined() || (lengths.dtype() == DType::int64 && lengths.shape() == Shape{call.batch})) continue;
    throw Error(
        fmt::format("attention: lengths {} {} for {} sequences", to_string(lengths.dtype()), to_string(lengths.shape()), call.batch));
  }
  if (form.dropout && !(form.dropout->rate >= 0 && form.dropout->rate < 1))
    throw Error(fmt::format("attention: the dropout rate {} is not in [0, 1)", form.dropout->rate));
  auto const expect = [](char const* what, Tensor const& given, Shape const& shape) {
    if (given.shape() != shape)
      throw Error(fmt::format("attention: {} are {}, where {} is wanted", what, to_string(given.shape()), to_string(shape)));
  };
  each_array(
      [&](AttentionArray const& array, Tensor const& x) {
        if (x.defined()) expect(array.name, x, shape_of(array.axes, call, x.elements()));
      },
      in);
  if (form.gaussian && !in.centres.defined()) throw Error("attention: a Gaussian wants centres");
  if (!form.hard) return call;
  Tensor const& chosen = form.hard->chosen;
  if (chosen.defined()) {
    expect("choices of a hard read", chosen, {call.batch, form.heads, call.queries});
    for (Index const j : chosen.data<std::int64_t>())
      if (j < 0 || j >= std::max<Index>(call.keys, 1)) throw Error(fmt::format("attention: a hard read of key {}, of {}", j, call.keys));
  }
  auto const choice = form.hard->choice;
  bool const draws = choice == HardRead::ChosenBy::gumbel || (choice != HardRead::ChosenBy::largest && !chosen.defined());
  if (draws && std::ssize(form.hard->streams) != call.batch * form.heads)
    throw Error(fmt::format("attention: {} streams of a hard read for {} sequences of {} heads", form.hard->streams.size(), call.batch,
                            form.heads));
  return call;
}

/// The arrays as the inputs of an operation, and back.
std::vector<Tensor> tensors_of(AttentionInputs const& all) {
  return mapped(pointers_to(all), [](Tensor const* x) { return *x; });
}
AttentionInputs attention_inputs(std::vector<Tensor> const& tensors) {
  AttentionInputs all;
  for (std::size_t i = 0; i < all.count; ++i) *pointers_to(all)[i] = tensors[i];
  return all;
}

}  // namespace

Tensor heads_of_groups(Tensor const& x, Index heads, Index groups) {
  Tensor const of_groups = split_heads(x, groups);
  if (groups == heads) return of_groups;
  Index const batch = x.size(0), rows = x.size(1), width = x.size(2) / groups;
  return reshape(expand(unsqueeze(of_groups, 2), {batch, groups, heads / groups, rows, width}), {batch, heads, rows, width});
}

Tensor near_bias(Tensor const& near, Index offset, Index keys) {
  Index const batch = near.size(0), queries = near.size(1), heads = near.size(2), reach = near.size(3) / 2;
  std::vector<Index> row;
  for (Index i = offset; i < offset + queries; ++i) {
    for (Index j = 0; j < keys; ++j) row.push_back(std::clamp(j - i, -reach, reach) + reach);
  }
  Tensor const index = expand(Tensor::of(row, {1, 1, queries, keys}), {batch, heads, queries, keys});
  return gather(permute(near, {0, 2, 1, 3}), -1, index);
}

Tensor gaussian_around(Tensor const& centres, double deviation, Index keys) {
  Tensor const distance = Tensor::arange(keys, centres.dtype()) - centres;
  return exp(scale(distance * distance, -1 / (2 * deviation * deviation)));
}

Tensor fused_attention(AttentionForm const& form, AttentionInputs const& given, Tensor* rows) {
  kernels::AttentionCall const call = checked_call(form, given);
  DType const dtype = given.query.dtype();
  kernels::AttentionOutput out{Tensor({call.batch, call.queries, form.heads * call.value_width + form.scores_of_choice()}, dtype),
                               Tensor({call.batch, form.heads, call.queries, kernels::kept_numbers}, dtype)};
  if (form.hard) out.chosen = Tensor({call.batch, form.heads, call.queries}, DType::int64);
  if (rows != nullptr) *rows = Tensor({call.batch, form.heads, call.queries, row_statistics}, DType::float64);
  out.rows = rows;
  kernels::with_real(dtype, [&](auto type) { kernels::attention_forward<decltype(type)>(call, out); });
  std::vector<Tensor> inputs = tensors_of(given);
  if (!std::ranges::any_of(inputs, records<Tensor>)) return out.context;
  Keep keep = keep_inputs;
  keep.output = kernels::has_tiles(call);
  AttentionForm known = form;  // derivatives of a hard read are at the chosen keys
  if (known.hard) known.hard->chosen = out.chosen;
  return record_fused(
      "attention", std::move(inputs), std::move(out.context), keep,
      [known, kept = out.kept](BackwardContext const& s) {
        bool const over_queries = s.may_reuse(0) && !known.sum;
        kernels::AttentionCall const again = checked_call(known, attention_inputs(s.inputs));
        return kernels::with_real(s.dy.dtype(), [&](auto type) {
          return tensors_of(kernels::attention_backward<decltype(type)>(again, kept, s.y, s.dy, over_queries));
        });
      },
      [known](std::vector<Tensor> const& tensors) { return attention_reference(known, attention_inputs(tensors)); },
      [known](BackwardContext const& s, std::vector<Tensor> const& u) {
        AttentionSecond const second = attention_second(known, attention_inputs(s.inputs), s.dy, attention_inputs(u));
        std::vector<Tensor> derivatives = tensors_of(second.inputs);
        derivatives.push_back(second.dy);
        return derivatives;
      });
}

}  // namespace heed
