// Products of matrices, batched, and triangular systems.

#include <fmt/format.h>

#include "autograd/blas/products.hpp"
#include "autograd/elementwise.hpp"
#include "autograd/kernels/dispatch.hpp"
#include "autograd/kernels/strided.hpp"
#include "autograd/kernels/triangular.hpp"
#include "autograd/ops/operations.hpp"
#include "autograd/ops/rounded_weights.hpp"
#include "autograd/parallel.hpp"

namespace heed {

namespace {

thread_local RoundedWeights* weights_in_use = nullptr;

Shape batch_of(Shape const& shape) { return Shape(std::span(shape.begin(), shape.rank() - 2)); }

/// Where the matrix that belongs to position i of the broadcast batch begins in an operand, in matrices.
std::vector<Index> matrix_positions(Shape const& own, Shape const& broadcast_batch) {
  kernels::Layout const layout = kernels::broadcast_layout(own, broadcast_batch);
  std::vector<Index> positions{0};
  for (std::size_t axis = 0; axis < broadcast_batch.rank(); ++axis) {
    std::vector<Index> finer;
    for (Index const position : positions)
      for (Index i = 0; i < broadcast_batch[static_cast<Index>(axis)]; ++i) finer.push_back(position + i * layout.strides[axis]);
    positions = std::move(finer);
  }
  return positions;
}

/// The product of a [..., n, k] and b [..., k, m] (before transposition), both of at least two axes.
Tensor product(Tensor const& a, Tensor const& b, bool transpose_a, bool transpose_b) {
  Index const n = a.size(transpose_a ? -1 : -2);
  Index const k = a.size(transpose_a ? -2 : -1);
  Index const m = b.size(transpose_b ? -2 : -1);
  if (b.size(transpose_b ? -1 : -2) != k)
    throw Error(fmt::format("matmul: inner dimensions differ: {}{} x {}{}", to_string(a.shape()), transpose_a ? "ᵀ" : "",
                            to_string(b.shape()), transpose_b ? "ᵀ" : ""));
  Shape const batch_a = batch_of(a.shape());
  Shape const batch_b = batch_of(b.shape());
  Shape const batch = broadcast(batch_a, batch_b, "matmul");
  Shape shape = batch;
  shape.append(n);
  shape.append(m);
  Tensor y(shape, a.dtype());
  kernels::with_real(a.dtype(), [&]<class T>(T) {
    T const* const pa = a.data<T>().data();
    T const* const pb = b.data<T>().data();
    T* const out = y.mutable_data<T>().data();
    if (batch_b.elements() == 1 && !transpose_a) {  // one right factor: the batch is more rows
      kernels::parallel_gemm<T>(batch.elements() * n, m, k, {pa, k}, {pb, b.size(-1), transpose_b}, out);
    } else if (batch.elements() == 1) {
      kernels::parallel_gemm<T>(n, m, k, {pa, a.size(-1), transpose_a}, {pb, b.size(-1), transpose_b}, out);
    } else {
      auto const at_a = matrix_positions(batch_a, batch);
      auto const at_b = matrix_positions(batch_b, batch);
      auto const multiply = [&](Index i) {
        kernels::gemm<T>(n, m, k, 1, {pa + at(at_a, i) * n * k, a.size(-1), transpose_a},
                         {pb + at(at_b, i) * k * m, b.size(-1), transpose_b}, 0, out + i * n * m, m);
      };
      parallel_each(batch.elements(), 0.02 * static_cast<double>(n * m * k), multiply, Cut::whole);
    }
  });
  return y;
}

/// Number of rows, which are along the last axis.
Index rows_of(Tensor const& x) { return AxisSplit(x.shape(), static_cast<Index>(x.rank()) - 1).outer; }
/// All axes but the last as rows.
Tensor flat(Tensor const& x) { return reshape(x, {rows_of(x), x.size(-1)}); }

/// Gradients of y = op(a) op(b), in the broadcast batch shape; where b is shared by a's whole batch, as one product of flat matrices.
std::vector<Tensor> product_gradients(BackwardContext const& s, bool transpose_a, bool transpose_b) {
  Tensor const& a = s.x(0);
  Tensor const& b = s.x(1);
  std::vector<Tensor> gradients(2);
  if (s.wants(0)) gradients[0] = transpose_a ? matmul(b, s.dy, transpose_b, true) : matmul(s.dy, b, false, !transpose_b);
  if (s.wants(1)) {
    bool const shared = b.rank() == 2 && a.rank() > 2 && !transpose_a;
    Tensor const left = shared ? flat(a) : a;
    Tensor const dy = shared ? flat(s.dy) : s.dy;
    gradients[1] = transpose_b ? matmul(dy, left, true, transpose_a) : matmul(left, dy, !transpose_a, false);
  }
  return gradients;
}

/// dx = dy W, added to what dx is so far, and, if dbias has a bias's shape, db = Σ_rows dy on the way.
Tensor input_gradient(BackwardContext const& s, Tensor& dbias) {
  Tensor const& weight = s.x(1);
  Index const in = weight.size(1), out = weight.size(0);
  bool const adds = s.into != nullptr;
  Tensor dx = adds ? *s.into : Tensor(s.x(0).shape(), s.dy.dtype());
  kernels::with_real(dx.dtype(), [&]<class T>(T) {
    kernels::parallel_gemm<T>(rows_of(dx), in, out, {s.dy.data<T>().data(), out}, {weight.data<T>().data(), in},
                              dx.mutable_data<T>().data(), {.in_place = adds}, dbias.defined() ? dbias.mutable_data<T>().data() : nullptr);
  });
  return dx;
}

}  // namespace

Tensor matmul(Tensor const& a, Tensor const& b, bool transpose_a, bool transpose_b) {
  require_same_real("matmul", a, b);
  if (a.rank() == 0 || b.rank() == 0)
    throw Error(fmt::format("matmul: wants at least one axis: {} x {}", to_string(a.shape()), to_string(b.shape())));
  if (a.rank() == 1) return squeeze(matmul(unsqueeze(a, 0), b, false, transpose_b), b.rank() == 1 ? 0 : -2);
  if (b.rank() == 1) return squeeze(matmul(a, unsqueeze(b, 1), transpose_a, false), -1);
  return record("matmul", {a, b}, product(a, b, transpose_a, transpose_b), keep_inputs,
                [transpose_a, transpose_b](BackwardContext const& s) { return product_gradients(s, transpose_a, transpose_b); });
}

RoundedWeights::Use::Use(RoundedWeights& weights) : Temporarily(weights_in_use, &weights) {}

RoundedWeights* RoundedWeights::in_use() { return weights_in_use; }

kernels::RoundedMatrix const& RoundedWeights::of(Tensor const& weight) {
  float const* const data = weight.data<float>().data();
  Index const out = weight.size(0), in = weight.size(1);
  WeightKey const key{data, out, in};
  auto found = rounded_.find(key);
  if (found == rounded_.end()) found = rounded_.emplace(key, RoundedWeight{weight.detach(), {data, out, in}}).first;
  return found->second.matrix;
}

Tensor linear(Tensor const& x, Tensor const& weight, Tensor const& bias, Tensor const& residual) {
  require_same_real("linear", x, weight);
  bool const fits = x.rank() > 0 && weight.rank() == 2 && weight.size(1) == x.size(-1);
  Shape shape = x.shape();
  if (fits) shape.set(-1, weight.size(0));
  if (!fits || (bias.defined() && bias.shape() != Shape{weight.size(0)}) || (residual.defined() && residual.shape() != shape))
    throw Error(fmt::format("linear: x {}, weight {}, bias {}{}: weight is [out, in], bias [out]", to_string(x.shape()),
                            to_string(weight.shape()), bias.defined() ? to_string(bias.shape()) : "none",
                            residual.defined() ? ", residual " + to_string(residual.shape()) : ""));
  Index const in = weight.size(1);
  Index const outputs = weight.size(0);
  Index const rows = rows_of(x);
  Tensor y(shape, x.dtype());
  kernels::with_real(x.dtype(), [&]<class T>(T) {
    auto const array = [](Tensor const& t) { return t.defined() ? t.data<T>().data() : nullptr; };
    T* const out = y.mutable_data<T>().data();
    if constexpr (std::is_same_v<T, float>) {
      if (RoundedWeights* const rounded = RoundedWeights::in_use(); rounded != nullptr && rows == 1 && in > 0 && products().bfloat16)
        return rounded->of(weight).times(array(x), array(bias), array(residual), out);
    }
    kernels::parallel_gemm<T>(rows, outputs, in, {array(x), in}, {array(weight), in, true}, out,
                              {.row = array(bias), .matrix = array(residual)});
  });
  if (!records(x, weight, bias, residual)) return y;
  return record("linear", {x, weight, bias, residual}, std::move(y), Keep{.inputs = {true, true}, .sum = true},
                [](BackwardContext const& s) {
                  bool const on_the_way = s.wants(0) && !recording();
                  Tensor dx, dweight, dbias = s.wants(2) && on_the_way ? Tensor(s.x(2).shape(), s.dy.dtype()) : Tensor();
                  if (s.wants(0)) dx = on_the_way ? input_gradient(s, dbias) : matmul(s.dy, s.x(1));
                  if (s.wants(1)) dweight = matmul(flat(s.dy), flat(s.x(0)), true, false);
                  if (s.wants(2) && !dbias.defined()) dbias = sum_to(s.dy, s.x(2).shape());
                  return std::vector{dx, dweight, dbias, s.wants(3) ? s.dy : Tensor()};
                });
}

Tensor solve_unit_lower(Tensor const& a, Tensor const& right, bool transposed) {
  require_same_real("solve_unit_lower", a, right);
  bool fits = a.rank() >= 2 && right.rank() == a.rank() && a.size(-2) == a.size(-1) && right.size(-2) == a.size(-1);
  for (std::size_t axis = 0; fits && axis + 2 < a.rank(); ++axis)
    fits = a.shape()[static_cast<Index>(axis)] == right.shape()[static_cast<Index>(axis)];
  if (!fits)
    throw Error(
        fmt::format("solve_unit_lower: A {} and R {}: wants [..., n, n] and [..., n, m]", to_string(a.shape()), to_string(right.shape())));
  Index const n = right.size(-2), m = right.size(-1), systems = n * m > 0 ? right.elements() / (n * m) : 0;
  Tensor y = right.clone();
  kernels::with_arrays(a, y, [&]<class T>(T const* matrix, T* w) {
    auto const solve = [&](Index i) { kernels::solve_unit_lower<T>(n, m, matrix + i * n * n, n, w + i * n * m, m, transposed); };
    parallel_each(systems, 0.03 * static_cast<double>(n * n * m), solve, Cut::whole);
  });
  return record("solve_unit_lower", {a, right}, std::move(y), Keep{.inputs = {true}, .output = true},
                [transposed](BackwardContext const& s) {
                  Tensor const dright = solve_unit_lower(s.x(0), s.dy, !transposed);
                  if (!s.wants(0)) return std::vector<Tensor>{{}, dright};
                  Tensor const outer = transposed ? matmul(s.y, dright, false, true) : matmul(dright, s.y, false, true);
                  return std::vector<Tensor>{-tril(outer, -1), dright};
                });
}

}  // namespace heed
