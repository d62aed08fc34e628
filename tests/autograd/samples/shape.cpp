// Shapes: reshaping, moving axes, repeating; slicing and joining.

#include "tests/autograd/samples/operation_check.hpp"

namespace heed::test {

namespace {

using Extents = std::vector<Index>;

Tensor reshaped_twice(Tensor const& x) { return reshape(x, {2, -1, 3}) * reshape(x, {2, 2, 3}); }
Tensor parts_in_another_order(Tensor const& x) {
  Tensors const parts = split(x, {2, 0, 1, 3}, -1);
  return concatenate({parts[3], parts[1], parts[0] * 2, parts[2] * parts[2]}, 1);
}
Tensors with_product(Tensors const& x) { return {x[0], x[1], x[0] * x[1]}; }

DeclaredChecks const shape_checks{{
    {"reshape",
     {one({3, 4}, reshaped_twice), one({1}, reshape, Extents{}), one({3, 0}, reshape, Extents{0, 7})},
     {fails("reshape: [2, 3] does not become [4, -1]", reshape, zeros({2, 3}), Extents{4, -1}),
      fails("reshape: [2, 3] does not become [-1, -1]", reshape, zeros({2, 3}), Extents{-1, -1}),
      fails("reshape: [2, 3] does not become [5]", reshape, zeros({2, 3}), Extents{5})}},
    {"squeeze",
     {one({3, 1, 4}, squeeze, 1), one({1}, squeeze, -1)},
     {fails("squeeze: axis 1 of [2, 3] is not 1", squeeze, zeros({2, 3}), 1),
      fails("squeeze: axis 1 is out of range for the shape [1]", squeeze, zeros({1}), 1)}},
    {"unsqueeze",
     {one({3, 4}, [](Tensor const& x) { return unsqueeze(x, 1) * unsqueeze(x, 0); }), one({}, unsqueeze, -1)},
     {fails("unsqueeze: no place for an axis 3 in [2, 3]", unsqueeze, zeros({2, 3}), 3)}},
    {"permute",
     {one({2, 3, 4, 2}, permute, Extents{0, 2, 1, 3}), one({2, 3, 4}, permute, Extents{2, 0, -2}), one({17, 19}, permute, Extents{1, 0}),
      one({2, 1, 3}, permute, Extents{1, 0, 2}), one({3, 0, 2}, permute, Extents{2, 1, 0}), one({}, permute, Extents{})},
     {fails("permute: [0] does not name every axis of [2, 3] once", permute, zeros({2, 3}), Extents{0}),
      fails("permute: [1, 1] does not name every axis of [2, 3] once", permute, zeros({2, 3}), Extents{1, 1}),
      fails("permute: axis 2 is out of range for the shape [2, 3]", permute, zeros({2, 3}), Extents{0, 2})}},
    {"transpose",
     {one({2, 3, 4}, transpose, -2, -1), one({2, 3, 4}, transpose, 0, -1)},
     {fails("transpose: axis -2 is out of range for the shape [3]", transpose, zeros({3}), -2, -1)}},
    {"expand",
     {one({3, 1}, expand, Shape{2, 3, 4}), one({2, 1, 3}, expand, Shape{2, 4, 3}), one({}, expand, Shape{2, 3}),
      one({1, 3}, expand, Shape{0, 3})},
     {fails("expand: [2, 3] does not expand to [4, 3]", expand, zeros({2, 3}), Shape{4, 3}),
      fails("expand: [2, 3] does not expand to [3]", expand, zeros({2, 3}), Shape{3})}},
}};

DeclaredChecks const slice_checks{{
    {"slice",
     {one({5, 3}, slice, 0, 1, 3, 1), one({2, 5, 3}, slice, 1, -4, 100, 1), one({2, 7}, slice, -1, 1, 7, 3),
      one({2, 5, 3}, slice, 1, -1, -100, -1), one({6, 2}, slice, 0, 4, 0, -2), one({1, 4, 2}, slice, 1, 1, 3, 1),
      one({4, 2}, slice, 0, 3, 1, 1), one({0, 2}, slice, 0, 0, 5, 2)},
     {fails("slice: axis 2 is out of range for the shape [2, 3]", slice, zeros({2, 3}), 2, 0, 1, 1),
      fails("slice: a step of 0 along axis 1 of [2, 3]", slice, zeros({2, 3}), 1, 0, 1, 0)}},
    {"split",
     {one({2, 6}, parts_in_another_order)},
     {fails("split: the sizes [1, 1] do not make up axis 1 of [2, 3]", split, zeros({2, 3}), Extents{1, 1}, 1),
      fails("split: the sizes [4, -1] do not make up axis 1 of [2, 3]", split, zeros({2, 3}), Extents{4, -1}, 1)}},
    {"concatenate",
     {several({{2, 3}, {2, 1}, {2, 0}}, [](Tensors const& x) { return concatenate(x, -1); }),
      several({{2, 3}, {1, 3}}, [](Tensors const& x) { return concatenate(with_product(x), 0); }),
      several({{2, 3, 2}, {2, 2, 2}}, [](Tensors const& x) { return concatenate(x, 1); }),
      one({2}, [](Tensor const& x) { return concatenate(Tensors(40, x), 0); })},
     {fails("concatenate: no tensors", concatenate, Tensors{}, 0),
      fails("concatenate: shapes differ beside axis 0: [2, 3] and [2]", concatenate, Tensors{zeros({2, 3}), zeros({2})}, 0),
      fails("concatenate: shapes differ beside axis 1: [2, 3] and [3, 4]", concatenate, Tensors{zeros({2, 3}), zeros({3, 4})}, 1),
      fails("concatenate: dtypes differ: float32 and float64", concatenate, Tensors{zeros({2}, DType::float32), zeros({2})}, 0)}},
    {"stack",
     {several({{2, 3}, {2, 3}}, [](Tensors const& x) { return stack(x, 0); }),
      several({{2, 3}, {2, 3}}, [](Tensors const& x) { return stack(with_product(x), -1); }),
      several({{}, {}}, [](Tensors const& x) { return stack(x, 0); })},
     {fails("stack: no tensors", stack, Tensors{}, 0),
      fails("stack: shapes differ: [2] and [3]", stack, Tensors{zeros({2}), zeros({3})}, 0)}},
    {"pad",
     {one({2, 3}, pad, -1, 2, 1, 0.5), one({2, 3}, pad, 0, 0, 1, 0), one({2, 0}, pad, 1, 1, 1, 0)},
     {fails("pad: 0 before and -1 after axis 1 of [2, 3]: neither can be negative", pad, zeros({2, 3}), 1, 0, -1, 0)}},
    {"tril",
     {one({4, 4}, tril, 0), one({2, 3, 5}, tril, 1), one({5, 3}, tril, -2)},
     {fails("tril: wants a matrix, not [3]", tril, zeros({3}), 0)}},
}};

}  // namespace

}  // namespace heed::test
