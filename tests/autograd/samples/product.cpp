// Products.

#include "tests/autograd/samples/operation_check.hpp"

namespace heed::test {

namespace {

/// Against Σ_k a_ik b_kj, spelt out.
Sample product_sample(Shape const& a, Shape const& b, bool transpose_a = false, bool transpose_b = false) {
  auto const swapped = [](Tensor const& x, bool swap) { return swap ? transpose(x) : x; };
  TensorFunction const spelt_out = [=](Tensors const& x) {
    return sum(unsqueeze(swapped(x[0], transpose_a), -1) * unsqueeze(swapped(x[1], transpose_b), -3), {-2});
  };
  return several(
      {a, b}, [=](Tensors const& x) { return matmul(x[0], x[1], transpose_a, transpose_b); },
      a.rank() < 2 || b.rank() < 2 ? TensorFunction() : spelt_out);
}

ErrorCase product_error(char const* message, Tensor const& a, Tensor const& b) { return fails(message, matmul, a, b, false, false); }

/// Of an input and a weight, then a bias, then a residual.
Tensor layer(Tensors const& x) { return linear(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), x.size() > 3 ? x[3] : Tensor()); }
Tensor composed_layer(Tensors const& x) { return std::accumulate(x.begin() + 2, x.end(), matmul(x[0], transpose(x[1]))); }

DeclaredChecks const matrix_product_checks{{
    {"matmul",
     {product_sample({3, 4}, {4, 5}), product_sample({2, 3, 4}, {4, 5}), product_sample({2, 3, 4}, {2, 4, 5}),
      product_sample({5, 1, 3, 4}, {2, 4, 6}), product_sample({4}, {4, 5}), product_sample({3, 4}, {4}), product_sample({4}, {4}),
      product_sample({4, 3}, {4, 5}, true), product_sample({3, 4}, {5, 4}, false, true), product_sample({4, 3}, {5, 4}, true, true),
      product_sample({2, 4, 3}, {4, 5}, true), product_sample({2, 4, 3}, {2, 5, 4}, true, true),
      product_sample({2, 3, 4}, {5, 4}, false, true), product_sample({3, 4}, {2, 4, 5}), product_sample({1, 1}, {1, 1}),
      product_sample({2, 0}, {0, 3}), product_sample({0, 2}, {2, 3})},
     {product_error("matmul: inner dimensions differ: [12, 64, 128] x [64, 32]", zeros({12, 64, 128}), zeros({64, 32})),
      product_error("matmul: shapes do not broadcast: [2] and [3]", zeros({2, 3, 4}), zeros({3, 4, 5})),
      product_error("matmul: dtypes differ: float64 and float32", zeros({3}), zeros({3}, DType::float32)),
      product_error("matmul: wants at least one axis: [] x [3]", zeros({}), zeros({3}))}},
    {"linear",
     {several({{2, 3, 4}, {5, 4}, {5}}, layer, composed_layer), several({{4}, {5, 4}}, layer, composed_layer),
      several({{2, 3, 4}, {19, 4}, {19}, {2, 3, 19}}, layer, composed_layer),
      several(
          {{3, 4}, {5, 4}, {3, 5}}, [](Tensors const& x) { return linear(x[0], x[1], {}, x[2]); }, composed_layer)},
     {fails("linear: x [2, 3], weight [4, 5], bias none", linear, zeros({2, 3}), zeros({4, 5}), Tensor(), Tensor())}},
}};

Tensor composed_product(Tensor const& x, Tensor const& weight, Index heads) { return merge_heads(matmul(split_heads(x, heads), weight)); }

Tensor composed_readout(Tensor const& x, Tensor const& weight, Tensor const& vector, Index heads) {
  Tensor const hidden = tanh(matmul(split_heads(x, heads), weight));  // [B, H, T, e]
  return sum(hidden * unsqueeze(vector, 1), {-1});
}

DeclaredChecks const head_product_checks{{
    {"head_product",
     {several(
          {{2, 3, 8}, {4, 2, 3}}, [](Tensors const& x) { return head_product(x[0], x[1], 4); },
          [](Tensors const& x) { return composed_product(x[0], x[1], 4); }),
      several(
          {{2, 3, 8}, {1, 4, 5}}, [](Tensors const& x) { return head_product(x[0], x[1], 2) + head_product(x[0], 2 * x[1], 2); },
          [](Tensors const& x) { return 3 * composed_product(x[0], x[1], 2); }),
      several({{2, 0, 4}, {2, 2, 3}}, [](Tensors const& x) { return head_product(x[0], x[1], 2); })},
     {fails("head_product: x [2, 3, 8] and weights [2, 3, 4] of 2 heads", head_product, zeros({2, 3, 8}), zeros({2, 3, 4}), 2)}},
    {"head_readout",
     {several(
          {{2, 3, 4}, {2, 2, 3}, {2, 3}}, [](Tensors const& x) { return head_readout(x[0], x[1], x[2], 2); },
          [](Tensors const& x) { return composed_readout(x[0], x[1], x[2], 2); }),
      several(
          {{1, 67, 2}, {1, 2, 2}, {1, 2}},  // more than one block
          [](Tensors const& x) { return head_readout(x[0], x[1], x[2], 1) + head_readout(2 * x[0], x[1], x[2], 1); },
          [](Tensors const& x) { return composed_readout(x[0], x[1], x[2], 1) + composed_readout(2 * x[0], x[1], x[2], 1); })},
     {fails("head_readout: weights [2, 4, 4] and vectors [2, 3] of 2 heads", head_readout, zeros({2, 3, 8}), zeros({2, 4, 4}),
            zeros({2, 3}), 2)}},
}};

/// The sum over a patch's places of shifted images.
Tensor conv2d_by_shifts(Tensor const& x, Tensor const& weight, Tensor const& bias, Index stride, Index padding) {
  Tensor const padded = pad(pad(x, 2, padding, padding), 3, padding, padding);
  Index const rows = weight.size(2), columns = weight.size(3);
  Tensor y;
  for (Index i = 0; i < rows * columns; ++i) {
    Index const row = i / columns, column = i % columns;
    Tensor const shifted =
        slice(slice(padded, 2, row, padded.size(2) - rows + row + 1, stride), 3, column, padded.size(3) - columns + column + 1, stride);
    Tensor const at = slice(slice(weight, 2, row, row + 1), 3, column, column + 1);  // [O, C, 1, 1]
    Tensor const term = sum(unsqueeze(shifted, 1) * at, {2});
    y = y.defined() ? y + term : term;
  }
  return bias.defined() ? y + reshape(bias, {-1, 1, 1}) : y;
}

Sample conv2d_sample(Shape const& x, Shape const& weight, bool biased, Index stride, Index padding) {
  auto const with = [=](auto const& f) {
    return [=](Tensors const& in) { return f(in[0], in[1], biased ? in[2] : Tensor(), stride, padding); };
  };
  std::vector<Shape> shapes{x, weight};
  if (biased) shapes.push_back({weight[0]});
  return several(shapes, with(conv2d), with(conv2d_by_shifts));
}

ErrorCase conv2d_error(char const* message, Shape const& x, Shape const& weight, Shape const& bias, Index stride = 1, Index padding = 0) {
  return fails(message, conv2d, zeros(x), zeros(weight), zeros(bias), stride, padding);
}

Tensor convolve_causal_by_shifts(Tensor const& x, Tensor const& weight) {
  Tensor y = scale(x, 0);
  for (Index i = 0; i < weight.size(1); ++i) {
    Index const back = std::min(weight.size(1) - 1 - i, x.size(1));
    Tensor const shifted = pad(slice(x, 1, 0, x.size(1) - back), 1, back, 0);
    y = y + shifted * reshape(slice(weight, 1, i, i + 1), {-1});
  }
  return y;
}

Sample convolve_causal_sample(Shape const& x, Shape const& weight) {
  auto const with = [](auto const& f) { return [=](Tensors const& in) { return f(in[0], in[1]); }; };
  return several({x, weight}, with(convolve_causal), with(convolve_causal_by_shifts));
}

DeclaredChecks const convolution_checks{{
    {"convolve_causal",
     {convolve_causal_sample({2, 5, 3}, {3, 4}), convolve_causal_sample({1, 3, 70}, {70, 2}), convolve_causal_sample({2, 2, 1}, {1, 5}),
      convolve_causal_sample({2, 0, 3}, {3, 2}), convolve_causal_sample({1, 4, 2}, {2, 1})},
     {fails("convolve_causal: x [2, 5, 3], weight [4, 3]: wants [B, T, C] and [C, w]", convolve_causal, zeros({2, 5, 3}), zeros({4, 3}))}},
    {"conv2d",
     {conv2d_sample({2, 2, 4, 3}, {2, 2, 3, 3}, true, 1, 0), conv2d_sample({1, 2, 5, 4}, {2, 2, 3, 2}, true, 1, 1),
      conv2d_sample({2, 1, 5, 4}, {2, 1, 3, 3}, false, 2, 1), conv2d_sample({1, 1, 6, 5}, {1, 1, 2, 3}, true, 3, 0),
      conv2d_sample({1, 1, 2, 2}, {1, 1, 1, 1}, false, 1, 2), conv2d_sample({0, 1, 2, 2}, {1, 1, 1, 1}, true, 1, 0)},
     {conv2d_error("conv2d: x [2, 3, 4, 4] and weight [5, 2, 3, 3] are not [B, C, H, W] and [O, C, h, w]", {2, 3, 4, 4}, {5, 2, 3, 3}, {5}),
      conv2d_error("conv2d: x [3, 4, 4] and weight [5, 3, 3, 3] are not [B, C, H, W] and [O, C, h, w]", {3, 4, 4}, {5, 3, 3, 3}, {5}),
      conv2d_error("conv2d: the bias [3] is not [5], the outputs of weight [5, 3, 3, 3]", {2, 3, 4, 4}, {5, 3, 3, 3}, {3}),
      conv2d_error("conv2d: a stride of 0 and a padding of 0: at least 1 and 0", {2, 3, 4, 4}, {5, 3, 3, 3}, {5}, 0),
      conv2d_error("conv2d: weight [5, 3, 5, 3] does not fit into x [2, 3, 2, 4] with a padding of 1", {2, 3, 2, 4}, {5, 3, 5, 3}, {5}, 1,
                   1)}},
}};

}  // namespace

}  // namespace heed::test
