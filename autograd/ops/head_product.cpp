// Products of each head's rows with its own matrix, and an MLP with one output per head, over slices of rows without a copy by heads.

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "autograd/blas/products.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/rows.hpp"
#include "autograd/ops/operations.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

constexpr Index block_rows = 64;

/// x [B, T, H·in], which is B·T rows, and a matrix [in, out] of each head, or one of all.
struct HeadExtents {
  HeadExtents(char const* operation, Tensor const& x, Tensor const& weight, Index count)
      : heads(count), groups(weight.rank() == 3 ? weight.size(0) : 0) {
    bool const fits = x.rank() == 3 && weight.rank() == 3 && heads > 0 && (groups == heads || groups == 1) &&
                      x.size(2) == heads * weight.size(1) && x.dtype() == weight.dtype();
    if (!fits)
      throw Error(fmt::format("{}: x {} and weights {} of {} heads: wants [B, T, H·d] and [H, d, e]", operation, to_string(x.shape()),
                              to_string(weight.shape()), heads));
    batch = x.size(0), length = x.size(1), rows = batch * length, in = weight.size(1), out = weight.size(2);
  }
  Index matrix(Index h) const { return groups == 1 ? 0 : h * in * out; }
  /// Where row r of x stands in [B, H, T].
  Index row_of_head(Index h, Index r) const { return (r / length * heads + h) * length + r % length; }
  Index blocks() const { return (rows + block_rows - 1) / block_rows; }
  /// f(first, count, h) for every block of rows of every head.
  template <class F>
  void each_block(F const& f) const {
    parallel_each(blocks() * heads, 0.05 * static_cast<double>(block_rows * in * out), [&](Index at) {
      Index const first = at / heads * block_rows;
      f(first, std::min(block_rows, rows - first), at % heads);
    });
  }

  Index heads, groups, batch = 0, length = 0, rows = 0, in = 0, out = 0;
};

template <class T>
Tensor product(HeadExtents const& e, Tensor const& x, Tensor const& weight) {
  Tensor y({e.batch, e.length, e.heads * e.out}, x.dtype());
  T const *from = x.data<T>().data(), *w = weight.data<T>().data();
  T* const to = y.mutable_data<T>().data();
  e.each_block([&](Index first, Index count, Index h) {
    kernels::gemm<T>(count, e.out, e.in, 1, {from + (first * e.heads + h) * e.in, e.heads * e.in}, {w + e.matrix(h), e.out}, 0,
                     to + (first * e.heads + h) * e.out, e.heads * e.out);
  });
  return y;
}

template <class T>
std::vector<Tensor> product_gradients(HeadExtents const& e, BackwardContext const& s) {
  bool const adds = s.into != nullptr;
  Tensor dx = adds ? *s.into : Tensor(s.x(0).shape(), s.dy.dtype());
  Tensor dweight = Tensor::zeros(s.x(1).shape(), s.dy.dtype());
  T const *x = s.x(0).data<T>().data(), *w = s.x(1).data<T>().data(), *dy = s.dy.data<T>().data();
  T *const to = dx.mutable_data<T>().data(), *const dw = dweight.mutable_data<T>().data();
  e.each_block([&](Index first, Index count, Index h) {
    kernels::gemm<T>(count, e.in, e.out, 1, {dy + (first * e.heads + h) * e.out, e.heads * e.out}, {w + e.matrix(h), e.out, true},
                     adds ? 1 : 0, to + (first * e.heads + h) * e.in, e.heads * e.in);
  });
  // Each thread computes some rows of a matrix, each over all rows of x, so that sums do not depend on the number of threads.
  Index const share = e.heads / e.groups, parts = (e.in + 15) / 16;
  parallel_each(e.groups * parts, 0.05 * static_cast<double>(16 * e.rows * e.out * share), [&](Index at) {
    Index const row = at % parts * 16, count = std::min<Index>(16, e.in - row), group = at / parts;
    for (Index h = group * share; h < (group + 1) * share; ++h)
      kernels::gemm<T>(count, e.out, e.rows, 1, {x + h * e.in + row, e.heads * e.in, true}, {dy + h * e.out, e.heads * e.out}, 1,
                       dw + e.matrix(h) + row * e.out, e.out);
  });
  return {dx, dweight};
}

/// hidden [rows, out] = tanh(x W) of some rows of a head.
template <class T>
void hidden_rows(HeadExtents const& e, T const* x, T const* w, Index rows, T* hidden) {
  kernels::gemm<T>(rows, e.out, e.in, 1, {x, e.heads * e.in}, {w, e.out}, 0, hidden, e.out);
  kernels::transform_row<T>(
      hidden, rows * e.out, [](auto const& v) { return xsimd::tanh(v); }, hidden);
}

template <class T>
Tensor readout(HeadExtents const& e, Tensor const& x, Tensor const& weight, Tensor const& vector) {
  Tensor y({e.batch, e.heads, e.length}, x.dtype());
  T const *from = x.data<T>().data(), *w = weight.data<T>().data(), *v = vector.data<T>().data();
  T* const to = y.mutable_data<T>().data();
  e.each_block([&](Index first, Index count, Index h) {
    std::vector<T> hidden(static_cast<std::size_t>(count * e.out));
    hidden_rows(e, from + (first * e.heads + h) * e.in, w + e.matrix(h), count, hidden.data());
    for (Index i = 0; i < count; ++i)
      to[e.row_of_head(h, first + i)] = kernels::dot_row<T>(hidden.data() + i * e.out, v + h * e.out, e.out);
  });
  return y;
}

/// Stretches of x's rows that are summed separately: the same number for any number of threads.
constexpr Index stretches = 4;

/// A hidden row becomes the gradient of its row of x W: dy v (1 − hidden²). dv += dy hidden.
template <class T>
void through_tanh(T dy, T const* v, Index n, T* hidden, T* dv) {
  kernels::Lanes<T> const d(dy), one(T(1));
  kernels::each_batch<T>(n, [&](Index c, auto const& batch) {
    auto const t = batch.load(hidden + c);
    batch.store(xsimd::fma(d, t, batch.load(dv + c)), dv + c);
    batch.store(d * batch.load(v + c) * xsimd::fnma(t, t, one), hidden + c);
  });
}

template <class T>
std::vector<Tensor> readout_gradients(HeadExtents const& e, BackwardContext const& s) {
  bool const adds = s.into != nullptr;
  Tensor dx = adds ? *s.into : Tensor(s.x(0).shape(), s.dy.dtype());
  Index const parts = std::min(stretches, std::max<Index>(1, e.blocks())), size = e.in * e.out, stride = e.heads * e.in;
  Tensor weights = Tensor::zeros({parts, e.heads, e.in, e.out}, s.dy.dtype());
  Tensor vectors = Tensor::zeros({parts, e.heads, e.out}, s.dy.dtype());
  T const *x = s.x(0).data<T>().data(), *w = s.x(1).data<T>().data(), *v = s.x(2).data<T>().data(), *dy = s.dy.data<T>().data();
  T *const to = dx.mutable_data<T>().data(), *const dw = weights.mutable_data<T>().data(), *const dv = vectors.mutable_data<T>().data();
  auto const stretch = [&](Index part, Index h) {
    std::vector<T> hidden(static_cast<std::size_t>(block_rows * e.out)), of_vector(static_cast<std::size_t>(e.out));
    for (Index block = part * e.blocks() / parts; block < (part + 1) * e.blocks() / parts; ++block) {
      Index const first = block * block_rows, count = std::min(block_rows, e.rows - first), at = (first * e.heads + h) * e.in;
      hidden_rows(e, x + at, w + h * size, count, hidden.data());
      std::ranges::fill(of_vector, T(0));  // a sum of blocks' sums: its error is that of few additions
      for (Index i = 0; i < count; ++i)
        through_tanh(dy[e.row_of_head(h, first + i)], v + h * e.out, e.out, hidden.data() + i * e.out, of_vector.data());
      std::ranges::transform(of_vector, std::span(dv + (part * e.heads + h) * e.out, of_vector.size()), dv + (part * e.heads + h) * e.out,
                             std::plus<T>());
      kernels::gemm<T>(count, e.in, e.out, 1, {hidden.data(), e.out}, {w + h * size, e.out, true}, adds ? 1 : 0, to + at, stride);
      kernels::gemm<T>(e.in, e.out, count, 1, {x + at, stride, true}, {hidden.data(), e.out}, 1, dw + (part * e.heads + h) * size, e.out);
    }
  };
  parallel_each(parts * e.heads, 0.15 * static_cast<double>(e.rows / parts * size),
                [&](Index task) { stretch(task / e.heads, task % e.heads); });
  return {dx, sum(weights, {0}), sum(vectors, {0})};
}

}  // namespace

Tensor head_product(Tensor const& x, Tensor const& weight, Index heads) {
  HeadExtents const e("head_product", x, weight, heads);
  Tensor y = kernels::with_real(x.dtype(), [&](auto type) { return product<decltype(type)>(e, x, weight); });
  return record_fused(
      "head_product", {x, weight}, std::move(y), Keep{.inputs = all_inputs, .sum = true},
      [e](BackwardContext const& s) {
        return kernels::with_real(s.dy.dtype(), [&](auto type) { return product_gradients<decltype(type)>(e, s); });
      },
      [heads](std::vector<Tensor> const& in) { return merge_heads(matmul(split_heads(in[0], heads), in[1])); });
}

Tensor head_readout(Tensor const& x, Tensor const& weight, Tensor const& vector, Index heads) {
  HeadExtents const e("head_readout", x, weight, heads);
  if (e.groups != heads || vector.shape() != Shape{heads, e.out} || vector.dtype() != x.dtype())
    throw Error(fmt::format("head_readout: weights {} and vectors {} of {} heads: wants [H, d, e] and [H, e]", to_string(weight.shape()),
                            to_string(vector.shape()), heads));
  Tensor y = kernels::with_real(x.dtype(), [&](auto type) { return readout<decltype(type)>(e, x, weight, vector); });
  return record_fused(
      "head_readout", {x, weight, vector}, std::move(y), Keep{.inputs = all_inputs, .sum = true},
      [e](BackwardContext const& s) {
        return kernels::with_real(s.dy.dtype(), [&](auto type) { return readout_gradients<decltype(type)>(e, s); });
      },
      [heads](std::vector<Tensor> const& in) {
        Tensor const hidden = tanh(matmul(split_heads(in[0], heads), in[1]));  // [B, H, T, e]
        return squeeze(matmul(hidden, unsqueeze(in[2], 2)), -1);
      });
}

}  // namespace heed
