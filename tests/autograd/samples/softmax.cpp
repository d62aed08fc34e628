// Softmax, its sparse variants, and norms.

#include "tests/autograd/samples/operation_check.hpp"

namespace heed::test {

namespace {

using AlongAxis = Tensor (*)(Tensor const&, Index);

OperationCheck softmax_check(char const* name, AlongAxis f, AlongAxis reference) {
  auto const of = [&](Shape const& shape, Index axis, Range range = {}) {
    auto const along = [=](AlongAxis function) { return [=](Tensors const& x) { return function(x[0], axis); }; };
    return Sample{{{shape, range}}, along(f), along(reference)};
  };
  return {name,
          {of({3, 4, 5}, 0), of({3, 4, 5}, 1), of({3, 4, 5}, -1), of({2, 1}, -1), of({2, 77}, -1, {-30, 30}), of({0, 3}, -1)},
          {fails("axis 2 is out of range for the shape [2, 3]", f, zeros({2, 3}), 2),
           fails("wants at least one axis, not a scalar", f, zeros({}), -1)}};
}

Tensor composed_softmax(Tensor const& x, Index axis) {
  Tensor const e = exp(x - max(x.detach(), {axis}, true));
  return e / sum(e, {axis}, true);
}
Tensor composed_log_softmax(Tensor const& x, Index axis) { return x - logsumexp(x, {axis}, true); }

/// A triangle of visible places for each matrix, and f(x, what is visible).
Tensor triangle(Tensor const& x, Index diagonal) { return tril(Tensor::ones({x.size(-2), x.size(-1)}, x.dtype()), diagonal); }
template <class F>
auto in_triangle(F f, Index diagonal) {
  return [=](Tensor const& x) { return f(x, triangle(x, diagonal)); };
}

DeclaredChecks const softmax_checks{{
    softmax_check("softmax", softmax, composed_softmax),
    softmax_check("log_softmax", log_softmax, composed_log_softmax),
    {"masked_softmax",
     {one({2, 3, 4}, in_triangle(masked_softmax, 0)), one({2, 3, 4}, in_triangle(masked_softmax, -1))},
     {fails("masked_softmax: the mask [4, 2, 3] does not broadcast to [2, 3]", masked_softmax, zeros({2, 3}), zeros({4, 2, 3}))}},
    {"softmax_with_sink",
     {several({{2, 2, 3, 4}, {2}}, [](Tensors const& x) { return softmax_with_sink(x[0], triangle(x[0], -1), x[1]); })},
     {fails("softmax_with_sink: x [1, 2, 3, 3] and sinks [3] are not [B, H, n, m] and [H]", softmax_with_sink, zeros({1, 2, 3, 3}),
            zeros({3, 3}), zeros({3}))}},
}};

/// Few elements at a distance, or many that all are in the support: no threshold lies within a finite difference of an element.
OperationCheck sparse_check(char const* name, Tensor (*f)(Tensor const&, Tensor const&)) {
  Sample near = one({2, 9}, in_triangle(f, 9));
  near.inputs[0].range = {-0.04, 0.04};
  return {name,
          {one({2, 3, 4}, in_triangle(f, 4)), one({2, 4, 4}, in_triangle(f, 0)), one({3, 4}, in_triangle(f, -1)),
           one({2, 1}, in_triangle(f, 1)), near},
          {fails("the mask [4, 2, 3] does not broadcast to [2, 3]", f, zeros({2, 3}), zeros({4, 2, 3}))}};
}

DeclaredChecks const sparse_checks{{
    sparse_check("sparsemax", sparsemax),
    sparse_check("entmax15", entmax15),
}};

constexpr double eps = 1e-5;

Tensor composed_rms_norm(Tensors const& x) { return x[0] * rsqrt(mean(x[0] * x[0], {-1}, true) + eps) * x[1]; }
Tensor composed_layer_norm(Tensors const& x) {
  Tensor const y = composed_rms_norm({x[0] - mean(x[0], {-1}, true), x[1]});
  return x.size() > 2 ? y + x[2] : y;
}

Tensor by_rms_norm(Tensors const& x) { return rms_norm(x[0], x[1], eps); }
Tensor by_layer_norm(Tensors const& x) { return layer_norm(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), eps); }

DeclaredChecks const norm_checks{{
    {"layer_norm",
     {several({{4, 5, 6}, {6}, {6}}, by_layer_norm, composed_layer_norm), several({{3, 37}, {37}}, by_layer_norm, composed_layer_norm),
      several({{0, 3}, {3}, {3}}, by_layer_norm)},
     {fails("layer_norm: x [2, 3], weight [4], bias none", layer_norm, zeros({2, 3}), zeros({4}), Tensor(), eps)}},
    {"rms_norm",
     {several({{4, 5, 6}, {6}}, by_rms_norm, composed_rms_norm), several({{3, 37}, {37}}, by_rms_norm, composed_rms_norm)},
     {fails("rms_norm: x [2, 3], weight [3, 1]", rms_norm, zeros({2, 3}), zeros({3, 1}), eps)}},
}};

}  // namespace

}  // namespace heed::test
