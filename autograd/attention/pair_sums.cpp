// Sums of scores as a separate operation, for derivatives of higher order.

#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/attention/fused_attention.hpp"
#include "autograd/attention/pairs.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/ops/formula.hpp"
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

  template <class T>
  kernels::PairRows<T> rows(std::vector<Tensor> const& x, Index b, Index h) const {
    T const* const weight = x.size() > 2 && x[2].defined() ? x[2].data<T>().data() + h * width : nullptr;
    return {x[0].data<T>().data() + (b * queries * heads + h) * width,
            heads * width,
            x[1].data<T>().data() + (b * keys * groups + h * groups / heads) * width,
            groups * width,
            weight,
            queries,
            keys,
            width};
  }

  /// Calls body(b, h) for every head, those of a group in order on one thread; `work`: passes over [n, m, d].
  template <class Body>
  void for_heads(double work, Body const& body) const {
    Index const share = heads / groups;
    parallel_for(
        batch * groups, 0.4 * work * static_cast<double>(queries * keys * width * share),
        [&](Index begin, Index end) {
          for (Index at = begin; at < end; ++at)
            for (Index h = at % groups * share; h < (at % groups + 1) * share; ++h) body(at / groups, h);
        },
        1, Cut::fine);
  }
};

/// Gradients of the inputs: rows of the query are set, those of keys and the weight of each sequence added to.
struct Targets {
  std::vector<Tensor> gradients;
  Tensor weights;  // [B, H, d]

  Targets(PairArrays const& p, std::vector<Tensor> const& inputs) : weights(Tensor::zeros({p.batch, p.heads, p.width}, inputs[0].dtype())) {
    for (Tensor const& x : inputs) gradients.push_back(Tensor::zeros(x.shape(), x.dtype()));
  }
  template <class T>
  kernels::PairRows<T> rows(PairArrays const& p, Index b, Index h) const {
    return p.rows<T>({gradients[0], gradients[1]}, b, h);
  }
  template <class T>
  T* weight(PairArrays const& p, Index b, Index h) {
    return gradients.size() > 2 ? weights.mutable_data<T>().data() + (b * p.heads + h) * p.width : nullptr;
  }
  std::vector<Tensor> all() {
    if (gradients.size() > 2) gradients[2] = heed::sum(weights, {0});
    return gradients;
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
  Targets to(p, inputs);
  p.for_heads(1.5, [&](Index b, Index h) {
    auto const head = p.sum.of_head(p.rows<T>(inputs, b, h));
    auto const rows = to.rows<T>(p, b, h);
    T const* const s = ds.data<T>().data() + (b * p.heads + h) * p.queries * p.keys;
    head->gradients(0, p.queries, {0, p.keys}, s, p.keys, const_cast<T*>(rows.query), rows.query_stride, to.weight<T>(p, b, h));
    head->add_keys(const_cast<T*>(rows.key), rows.key_stride);
  });
  return to.all();
}

/// Σ_ij ds_ij s'_ij, s' along u: by the inputs and ds.
template <class T>
std::vector<Tensor> second(PairArrays const& p, std::vector<Tensor> const& inputs, Tensor const& ds, std::vector<Tensor> const& u) {
  Targets to(p, inputs);
  Tensor along(ds.shape(), ds.dtype());
  T* const out = along.mutable_data<T>().data();
  p.for_heads(3, [&](Index b, Index h) {
    auto const head = p.sum.of_head(p.rows<T>(inputs, b, h));
    auto const rows = to.rows<T>(p, b, h);
    Index const at = (b * p.heads + h) * p.queries * p.keys;
    head->along(p.rows<T>(u, b, h));
    head->second(0, p.queries, ds.data<T>().data() + at, out + at, p.keys, const_cast<T*>(rows.query), rows.query_stride,
                 to.weight<T>(p, b, h));
    head->add_keys(const_cast<T*>(rows.key), rows.key_stride);
  });
  std::vector<Tensor> result = to.all();
  result.push_back(along);
  return result;
}

}  // namespace

Tensor pair_sums(std::shared_ptr<PairSum const> const& sum, Tensor const& query, Tensor const& key, Tensor const& weight, Index heads,
                 Index groups) {
  std::vector<Tensor> inputs{query, key};
  if (weight.defined()) inputs.push_back(weight);
  auto const pairs = [=](std::vector<Tensor> const& x) { return PairArrays(*sum, x[0], x[1], heads, groups); };
  Tensor value;
  kernels::with_real(query.dtype(), [&](auto type) { value = values<decltype(type)>(pairs(inputs), inputs); });
  return record_fused(
      "pair_sums", inputs, std::move(value), keep_inputs,
      [pairs](BackwardContext const& s) {
        std::vector<Tensor> g;
        kernels::with_real(s.dy.dtype(), [&](auto type) { g = gradients<decltype(type)>(pairs(s.inputs), s.inputs, s.dy); });
        return g;
      },
      [sum, heads, groups](std::vector<Tensor> const& x) {
        return sum->composed(split_heads(x[0], heads), heads_of_groups(x[1], heads, groups), x.size() > 2 ? x[2] : Tensor());
      },
      [pairs](BackwardContext const& s, std::vector<Tensor> u) {
        for (std::size_t i = 0; i < u.size(); ++i)
          if (!u[i].defined()) u[i] = Tensor::zeros(s.x(i).shape(), s.dy.dtype());
        std::vector<Tensor> g;
        kernels::with_real(s.dy.dtype(), [&](auto type) { g = second<decltype(type)>(pairs(s.inputs), s.inputs, s.dy, u); });
        return g;
      });
}

}  // namespace heed
