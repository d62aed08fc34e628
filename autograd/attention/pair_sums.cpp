// Sums of scores as a separate operation, for derivatives of higher order.

#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/pairs.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

constexpr Index block_rows = 64;

/// The arrays of all sequences and heads.
struct PairArrays {
  PairSum const& sum;
  Index batch, queries, keys, width, heads, groups;

  PairArrays(PairSum const& s, Tensor const& query, Tensor const& key, Index h, Index g)
      : sum(s), batch(query.size(0)), queries(query.size(1)), keys(key.size(1)), width(query.size(2) / h), heads(h), groups(g) {}

  Index query_row(Index b, Index h) const { return (b * queries * heads + h) * width; }
  Index key_row(Index b, Index h) const { return (b * keys * groups + h * groups / heads) * width; }

  template <class T>
  kernels::PairRows<T> rows(std::vector<Tensor> const& x, Index b, Index h) const {
    T const *const query = x[0].data<T>().data() + query_row(b, h), *const key = x[1].data<T>().data() + key_row(b, h);
    T const* const weight = x[2].defined() ? x[2].data<T>().data() + h * width : nullptr;
    return {query, heads * width, key, groups * width, weight, queries, keys, width};
  }

  /// The inputs' gradients, by body(head, dq, dk, dw, b, h), which sets the rows dq and adds to dk and dw, for every head, those of a group
  /// in order on one thread; `work`: passes over [n, m, d].
  template <class T, class Body>
  std::vector<Tensor> gradients(double work, std::vector<Tensor> const& x, Body const& body) const {
    Tensor query = Tensor::zeros(x[0].shape(), x[0].dtype()), key = Tensor::zeros(x[1].shape(), x[1].dtype());
    Tensor weights = x[2].defined() ? Tensor::zeros({batch, heads, width}, x[2].dtype()) : Tensor();
    T *const dq = query.mutable_data<T>().data(), *const dk = key.mutable_data<T>().data();
    T* const dw = weights.defined() ? weights.mutable_data<T>().data() : nullptr;
    for_heads(work, [&](Index b, Index h) {
      body(*sum.of_head(rows<T>(x, b, h)), dq + query_row(b, h), dk + key_row(b, h), dw != nullptr ? dw + (b * heads + h) * width : dw, b,
           h);
    });
    return {query, key, weights.defined() ? heed::sum(weights, {0}) : Tensor()};
  }

  /// Calls body(b, h) for every head, those of a group in order on one thread; `work`: passes over [n, m, d].
  template <class Body>
  void for_heads(double work, Body const& body) const {
    Index const share = heads / groups;
    parallel_each(batch * groups, 0.4 * work * static_cast<double>(queries * keys * width * share), [&](Index at) {
      for (Index h = at % groups * share; h < (at % groups + 1) * share; ++h) body(at / groups, h);
    });
  }
};

template <class T>
Tensor values(PairArrays const& p, std::vector<Tensor> const& inputs) {
  Tensor result({p.batch, p.heads, p.queries, p.keys}, inputs[0].dtype());
  Index const stride = (p.keys + kernels::lanes<T> - 1) / kernels::lanes<T> * kernels::lanes<T> + kernels::lanes<T>;
  T* const out = result.mutable_data<T>().data();
  p.for_heads(1, [&](Index b, Index h) {
    auto const head = p.sum.of_head(p.rows<T>(inputs, b, h));
    std::vector<T> block(static_cast<std::size_t>(std::min(block_rows, p.queries) * stride));
    for (Index first = 0; first < p.queries; first += block_rows) {
      Index const rows = std::min(block_rows, p.queries - first);
      head->sums(first, std::vector<KeyRange>(static_cast<std::size_t>(rows), {0, p.keys}), {0, p.keys}, block.data(), stride);
      for (Index i = 0; i < rows; ++i)
        std::copy_n(block.data() + i * stride, p.keys, out + (((b * p.heads + h) * p.queries) + first + i) * p.keys);
    }
  });
  return result;
}

template <class T>
std::vector<Tensor> gradients(PairArrays const& p, std::vector<Tensor> const& inputs, Tensor const& ds) {
  return p.gradients<T>(1.5, inputs, [&](kernels::HeadSum<T>& head, T* dq, T* dk, T* dw, Index b, Index h) {
    T const* const s = ds.data<T>().data() + (b * p.heads + h) * p.queries * p.keys;
    head.gradients(0, p.queries, {0, p.keys}, s, p.keys, dq, p.heads * p.width, dw);
    head.add_keys(dk, p.groups * p.width);
  });
}

/// Σ_ij ds_ij s'_ij, s' along u: by the inputs and ds.
template <class T>
std::vector<Tensor> second(PairArrays const& p, std::vector<Tensor> const& inputs, Tensor const& ds, std::vector<Tensor> const& u) {
  Tensor along(ds.shape(), ds.dtype());
  T* const out = along.mutable_data<T>().data();
  std::vector<Tensor> result = p.gradients<T>(3, inputs, [&](kernels::HeadSum<T>& head, T* dq, T* dk, T* dw, Index b, Index h) {
    Index const at = (b * p.heads + h) * p.queries * p.keys;
    head.along(p.rows<T>(u, b, h));
    head.second(0, p.queries, ds.data<T>().data() + at, out + at, p.keys, dq, p.heads * p.width, dw);
    head.add_keys(dk, p.groups * p.width);
  });
  result.push_back(along);
  return result;
}

}  // namespace

Tensor pair_sums(std::shared_ptr<PairSum const> const& sum, Tensor const& query, Tensor const& key, Tensor const& weight, Index heads,
                 Index groups) {
  std::vector<Tensor> const inputs{query, key, weight};
  auto const pairs = [=](std::vector<Tensor> const& x) { return PairArrays(*sum, x[0], x[1], heads, groups); };
  Tensor value = kernels::with_real(query.dtype(), [&](auto type) { return values<decltype(type)>(pairs(inputs), inputs); });
  return record_fused(
      "pair_sums", inputs, std::move(value), keep_inputs,
      [pairs](BackwardContext const& s) {
        return kernels::with_real(s.dy.dtype(), [&](auto type) { return gradients<decltype(type)>(pairs(s.inputs), s.inputs, s.dy); });
      },
      [sum, heads, groups](std::vector<Tensor> const& x) {
        return sum->composed(split_heads(x[0], heads), heads_of_groups(x[1], heads, groups), x[2]);
      },
      [pairs](BackwardContext const& s, std::vector<Tensor> u) {
        for (std::size_t i = 0; i < u.size(); ++i)
          if (!u[i].defined() && s.x(i).defined()) u[i] = Tensor::zeros(s.x(i).shape(), s.dy.dtype());
        return kernels::with_real(s.dy.dtype(), [&](auto type) { return second<decltype(type)>(pairs(s.inputs), s.inputs, s.dy, u); });
      });
}

}  // namespace heed
