#include "tests/autograd/samples/operation_check.hpp"

#include "autograd/registry.hpp"

namespace heed::test {

DeclaredChecks::DeclaredChecks(std::vector<OperationCheck> checks) {
  for (OperationCheck& check : checks) Registry<OperationCheck>::add(std::move(check));
}

Sample several(std::vector<Shape> const& shapes, TensorFunction call, TensorFunction reference) {
  Sample sample{{}, std::move(call), std::move(reference)};
  for (Shape const& shape : shapes) sample.inputs.push_back({shape});
  return sample;
}

OperationCheck unary_check(std::string name, Tensor (*function)(Tensor const&), Range range) {
  TensorFunction const call = [function](Tensors const& x) { return function(x[0]); };
  std::vector<Sample> samples;
  for (Shape const& shape : {Shape{3, 5}, Shape{}, Shape{1}, Shape{19}, Shape{0, 4}}) samples.push_back({{{shape, range}}, call});
  return {std::move(name), std::move(samples), {fails("int64", function, zeros({2}, DType::int64))}};
}

OperationCheck binary_check(std::string name, Tensor (*function)(Tensor const&, Tensor const&), Range a, Range b, bool differentiable) {
  TensorFunction const call = [function](Tensors const& x) { return function(x[0], x[1]); };
  std::vector<Sample> samples;
  std::vector<std::pair<Shape, Shape>> const shapes{{{2, 3}, {2, 3}}, {{3, 1, 5}, {4, 1}}, {{5}, {2, 3, 5}},
                                                    {{}, {3}},        {{0, 2}, {1, 2}},    {{2, 1, 3, 1}, {4, 1, 7}}};
  for (auto const& [left, right] : shapes) samples.push_back({{{left, a}, {right, b}}, call});
  std::vector<ErrorCase> const errors{
      fails(name + ": shapes do not broadcast: [2, 3] and [4]", function, zeros({2, 3}), zeros({4})),
      fails(name + ": dtypes differ: float64 and float32", function, zeros({2}), zeros({2}, DType::float32))};
  return {std::move(name), std::move(samples), errors, differentiable};
}

}  // namespace heed::test
