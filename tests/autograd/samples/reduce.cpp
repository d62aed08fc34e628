// Reductions and running sums.

#include "tests/autograd/samples/operation_check.hpp"

namespace heed::test {

namespace {

/// With samples in [−reach, reach): wide where ties are kinks, so that none is near.
OperationCheck reduction_check(char const* name, Tensor (*f)(Tensor const&, Axes const&, bool), double reach = 2) {
  auto const of = [&](Shape const& shape, Axes const& axes, bool keep) {
    return Sample{{{shape, {-reach, reach}}}, [=](Tensors const& x) { return f(x[0], axes, keep); }};
  };
  return {name,
          {of({3, 4, 5}, {}, false), of({3, 4, 5}, {1}, false), of({3, 4, 5}, {-1}, true), of({3, 4, 5}, {0, 2}, true),
           of({3, 4, 5}, {0, 1}, false), of({}, {}, false), of({2, 1, 3}, {1}, false), of({2, 70}, {0}, false), of({1, 67}, {1}, true)},
          {fails("axis 2 is out of range for the shape [2, 3]", f, zeros({2, 3}), Axes{2}, false),
           fails("wants real numbers, not int64", f, zeros({3}, DType::int64), Axes{}, false)}};
}

DeclaredChecks const reduction_checks{{
    reduction_check("sum", sum),
    reduction_check("sum_of_squares", sum_of_squares),
    reduction_check("mean", mean),
    reduction_check("variance", [](Tensor const& x, Axes const& axes, bool keep) { return variance(x, axes, keep); }),
    reduction_check("max", max, 50),
    reduction_check("min", min, 50),
    reduction_check("logsumexp", logsumexp),
    {"sum_to",
     {one({3, 4, 5}, sum_to, Shape{4, 1}), one({3, 4}, sum_to, Shape{})},
     {fails("sum_to: [2, 3] does not come from [4] by broadcasting", sum_to, zeros({2, 3}), Shape{4})}},
    {"argmax", {one({3, 4}, argmax, 1)}, {fails("argmax: over no elements at all, in [2, 0]", argmax, zeros({2, 0}), 1)}, false},
    {"cumsum",
     {one({3, 4, 5}, cumsum, 1, false), one({3, 4}, cumsum, -1, true)},
     {fails("axis 1 is out of range", cumsum, zeros({2}), 1, false)}},
}};

}  // namespace

}  // namespace heed::test
