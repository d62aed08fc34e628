// Scaled dot-product attention, fused: scores, mask, softmax and the weighted sum of one block of queries at a time.

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/gemm.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/formula.hpp"

namespace heed {

std::int64_t Visibility::count(std::int64_t b, std::int64_t i, std::int64_t keys) const {
  std::int64_t const length = lengths.defined() ? lengths.data<std::int64_t>()[static_cast<std::size_t>(b)] : keys;
  return std::clamp<std::int64_t>(causal ? std::min(length, offset + i + 1) : length, 0, keys);
}

Tensor Visibility::mask(std::int64_t queries, std::int64_t keys, DType dtype) const {
  std::int64_t const sequences = lengths.defined() ? lengths.elements() : 1;
  Tensor mask = Tensor::zeros({sequences, 1, queries, keys}, dtype);
  kernels::with_real(dtype, [&](auto type) {
    auto* row = mask.mutable_data<decltype(type)>().data();
    for (std::int64_t b = 0; b < sequences; ++b) {
      for (std::int64_t i = 0; i < queries; ++i, row += keys) std::fill_n(row, count(b, i, keys), decltype(type)(1));
    }
  });
  return mask;
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

namespace {

using kernels::Matrix;

constexpr std::int64_t block = 64;  // queries whose scores are held at once

/// What the kernels need to know of one call.
struct Plan {
  std::int64_t batch, heads, queries, keys, width, value_width;
  double scale;
  Visibility visibility;
};

/// P [rows, seen] = e^(scale q·kᵀ − lse), or softmax rows if `lse` is yet to be found; columns that a row does not see are 0.
template <class T>
void weigh(Plan const& p, std::int64_t b, std::int64_t first, std::int64_t rows, std::int64_t seen, T const* q, T const* k, T* weights,
           T* lse, bool known) {
  kernels::gemm<T>(rows, seen, p.width, static_cast<T>(p.scale), {q, p.heads * p.width}, {k, p.heads * p.width, true}, 0, weights, seen);
  for (std::int64_t i = 0; i < rows; ++i) {
    T* const row = weights + i * seen;
    std::int64_t const count = p.visibility.count(b, first + i, p.keys);
    std::fill(row + count, row + seen, T(0));
    if (count == 0) {
      lse[i] = 0;
    } else if (known) {
      kernels::exp_row(row, lse[i], row, count);
    } else {
      lse[i] = kernels::softmax_row(row, row, count);
    }
  }
}

/// Calls body(b, h) for every sequence and head, on the pool.
template <class Body>
void for_heads(Plan const& p, double products, Body const& body) {
  double const cost = products * 0.02 * static_cast<double>(p.queries * p.keys * (p.width + 20));
  parallel_for(p.batch * p.heads, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) body(at / p.heads, at % p.heads);
  });
}

/// The keys that any of `rows` queries from `first` on may see: they all are among the first so many.
std::int64_t most_seen(Plan const& p, std::int64_t b, std::int64_t first, std::int64_t rows) {
  return p.visibility.count(b, first + rows - 1, p.keys);
}

template <class T>
void forward(Plan const& p, Tensor const& query, Tensor const& key, Tensor const& value, Tensor& context, Tensor& lse) {
  std::int64_t const stride = p.heads * p.width;
  std::int64_t const value_stride = p.heads * p.value_width;
  for_heads(p, 2, [&](std::int64_t b, std::int64_t h) {
    T const* const q = query.data<T>().data() + b * p.queries * stride + h * p.width;
    T const* const k = key.data<T>().data() + b * p.keys * stride + h * p.width;
    T const* const v = value.data<T>().data() + b * p.keys * value_stride + h * p.value_width;
    T* const out = context.mutable_data<T>().data() + b * p.queries * value_stride + h * p.value_width;
    T* const norms = lse.mutable_data<T>().data() + (b * p.heads + h) * p.queries;
    Tensor scratch({std::min(block, p.queries), p.keys}, context.dtype());
    T* const weights = scratch.mutable_data<T>().data();
    for (std::int64_t first = 0; first < p.queries; first += block) {
      std::int64_t const rows = std::min(block, p.queries - first);
      std::int64_t const seen = most_seen(p, b, first, rows);
      weigh(p, b, first, rows, seen, q + first * stride, k, weights, norms + first, false);
      kernels::gemm<T>(rows, p.value_width, seen, 1, {weights, seen}, {v, value_stride}, 0, out + first * value_stride, value_stride);
    }
  });
}

/// With P from the kept norms, dP = dC vᵀ and dS = P (dP − Σ_j P dP): dq = s dS k, dk = s dSᵀ q, dv = Pᵀ dC.
template <class T>
void backward(Plan const& p, Step const& s, Tensor const& lse, std::vector<Tensor>& gradients) {
  std::int64_t const stride = p.heads * p.width;
  std::int64_t const value_stride = p.heads * p.value_width;
  T const scale = static_cast<T>(p.scale);
  for_heads(p, 5, [&](std::int64_t b, std::int64_t h) {
    std::int64_t const at_query = b * p.queries * stride + h * p.width;
    std::int64_t const at_key = b * p.keys * stride + h * p.width;
    std::int64_t const at_value = b * p.keys * value_stride + h * p.value_width;
    T const* const q = s.x(0).data<T>().data() + at_query;
    T const* const k = s.x(1).data<T>().data() + at_key;
    T const* const v = s.x(2).data<T>().data() + at_value;
    T const* const dc = s.dy.data<T>().data() + b * p.queries * value_stride + h * p.value_width;
    T* const dq = gradients[0].mutable_data<T>().data() + at_query;
    T* const dk = gradients[1].mutable_data<T>().data() + at_key;
    T* const dv = gradients[2].mutable_data<T>().data() + at_value;
    Tensor norms = lse;
    T* const kept = norms.mutable_data<T>().data() + (b * p.heads + h) * p.queries;
    Tensor scratch({2, std::min(block, p.queries), p.keys}, s.dy.dtype());
    T* const weights = scratch.mutable_data<T>().data();
    T* const dscores = weights + scratch.size(1) * p.keys;
    for (std::int64_t j = 0; j < p.keys; ++j) {
      std::fill_n(dk + j * stride, p.width, T(0));
      std::fill_n(dv + j * value_stride, p.value_width, T(0));
    }
    for (std::int64_t first = 0; first < p.queries; first += block) {
      std::int64_t const rows = std::min(block, p.queries - first);
      std::int64_t const seen = most_seen(p, b, first, rows);
      weigh(p, b, first, rows, seen, q + first * stride, k, weights, kept + first, true);
      Matrix<T> const dcontext{dc + first * value_stride, value_stride};
      kernels::gemm<T>(rows, seen, p.value_width, 1, dcontext, {v, value_stride, true}, 0, dscores, seen);
      kernels::gemm<T>(seen, p.value_width, rows, 1, {weights, seen, true}, dcontext, 1, dv, value_stride);
      for (std::int64_t i = 0; i < rows; ++i)
        kernels::softmax_row_backward<T>(weights + i * seen, dscores + i * seen, dscores + i * seen, seen);
      kernels::gemm<T>(rows, p.width, seen, scale, {dscores, seen}, {k, stride}, 0, dq + first * stride, stride);
      kernels::gemm<T>(seen, p.width, rows, scale, {dscores, seen, true}, {q + first * stride, stride}, 1, dk, stride);
    }
  });
}

Tensor reference(std::vector<Tensor> const& in, Plan const& p) {
  Tensor const scores = scale(matmul(split_heads(in[0], p.heads), split_heads(in[1], p.heads), false, true), p.scale);
  Tensor const weights = masked_softmax(scores, p.visibility.mask(p.queries, p.keys, scores.dtype()));
  return merge_heads(matmul(weights, split_heads(in[2], p.heads)));
}

Plan plan(Tensor const& query, Tensor const& key, Tensor const& value, std::int64_t heads, double scale, Visibility const& visibility) {
  require_same_real("scaled_dot_attention", query, key);
  require_same_real("scaled_dot_attention", query, value);
  bool const fits = query.rank() == 3 && key.rank() == 3 && value.rank() == 3 && heads > 0 && query.size(0) == key.size(0) &&
                    key.size(0) == value.size(0) && key.size(1) == value.size(1) && query.size(2) == key.size(2) &&
                    key.size(2) % heads == 0 && value.size(2) % heads == 0;
  if (!fits) {
    throw Error(fmt::format("scaled_dot_attention: query {}, key {}, value {} with {} heads: wants [B, n, H·d], [B, m, H·d], [B, m, H·d_v]",
                            to_string(query.shape()), to_string(key.shape()), to_string(value.shape()), heads));
  }
  if (visibility.lengths.defined() && (visibility.lengths.dtype() != DType::int64 || visibility.lengths.shape() != Shape{query.size(0)})) {
    throw Error(fmt::format("scaled_dot_attention: lengths {} {} for {} sequences", to_string(visibility.lengths.dtype()),
                            to_string(visibility.lengths.shape()), query.size(0)));
  }
  return {query.size(0), heads, query.size(1), key.size(1), query.size(2) / heads, value.size(2) / heads, scale, visibility};
}

}  // namespace

Tensor scaled_dot_attention(Tensor const& query, Tensor const& key, Tensor const& value, std::int64_t heads, double scale,
                            Visibility const& visibility) {
  Plan const p = plan(query, key, value, heads, scale, visibility);
  Tensor context({p.batch, p.queries, heads * p.value_width}, query.dtype());
  Tensor lse({p.batch, heads, p.queries}, query.dtype());
  kernels::with_real(query.dtype(), [&](auto type) { forward<decltype(type)>(p, query, key, value, context, lse); });
  return record_fused(
      "scaled_dot_attention", {query, key, value}, std::move(context), keep_inputs,
      [p, lse](Step const& s) {
        std::vector<Tensor> gradients{Tensor(s.x(0).shape(), s.dy.dtype()), Tensor(s.x(1).shape(), s.dy.dtype()),
                                      Tensor(s.x(2).shape(), s.dy.dtype())};
        kernels::with_real(s.dy.dtype(), [&](auto type) { backward<decltype(type)>(p, s, lse, gradients); });
        return gradients;
      },
      [p](std::vector<Tensor> const& in) { return reference(in, p); });
}

namespace {

Sample attention_sample(Shape query, Shape key, Shape value, std::int64_t heads, Visibility const& visibility, double reach = 2) {
  return {{{query, -reach, reach}, {key, -reach, reach}, {value}},
          [=](std::vector<Tensor> const& x) { return scaled_dot_attention(x[0], x[1], x[2], heads, 0.5, visibility); },
          [=](std::vector<Tensor> const& x) { return reference(x, plan(x[0], x[1], x[2], heads, 0.5, visibility)); }};
}

Tensor lengths(std::vector<std::int64_t> const& values) { return Tensor::of(values, {static_cast<std::int64_t>(values.size())}); }

}  // namespace

static Registered const attention_check{
    {"scaled_dot_attention",
     "Σ_j softmax_j(s q_i·k_j) v_j",
     {attention_sample({2, 5, 6}, {2, 5, 6}, {2, 5, 4}, 2, {true, {}, 0}),
      attention_sample({2, 3, 6}, {2, 5, 6}, {2, 5, 2}, 1, {false, {}, 0}),
      attention_sample({2, 3, 4}, {2, 5, 4}, {2, 5, 4}, 2, {true, {}, 2}),
      attention_sample({3, 4, 4}, {3, 4, 4}, {3, 4, 4}, 2, {true, lengths({4, 2, 0}), 0}),
      attention_sample({1, 1, 2}, {1, 1, 2}, {1, 1, 2}, 1, {}), attention_sample({1, 70, 2}, {1, 70, 2}, {1, 70, 1}, 1, {true, {}, 0}, 3)},
     {{[] {
         Tensor const x = Tensor::zeros({2, 3, 4}, DType::float64);
         scaled_dot_attention(x, Tensor::zeros({2, 3, 6}, DType::float64), x, 2, 1, {});
       },
       "scaled_dot_attention: query [2, 3, 4], key [2, 3, 6], value [2, 3, 4] with 2 heads"}}}};

}  // namespace heed
