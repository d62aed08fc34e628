// Elementwise operations.

#include "tests/autograd/samples/operation_check.hpp"

namespace heed::test {

namespace {

/// 1 at the first and the last of four.
Tensor ends(Tensor const& x) { return Tensor::of({1, 0, 0, 1}, {4}, x.dtype()); }

DeclaredChecks const arithmetic_checks{{
    binary_check("add", add),
    binary_check("subtract", subtract),
    binary_check("multiply", multiply),
    binary_check("divide", divide, {}, {0.5, 2}),
    unary_check("scale", [](Tensor const& x) { return scale(x, 1.7); }),
    unary_check("shift", [](Tensor const& x) { return shift(x, 1.7); }),
    unary_check("negate", negate),
    unary_check("reciprocal", reciprocal, {0.5, 2}),
    unary_check("pow (number)", [](Tensor const& x) { return pow(x, 2.5); }, {0.3, 2}),
    unary_check("pow (whole number)", [](Tensor const& x) { return pow(x, 3) + pow(x, -2); }, {-2, -0.4}),
    binary_check("pow", pow, {0.4, 2}),
}};

DeclaredChecks const elementary_checks{{
    unary_check("exp", exp),
    unary_check("expm1", expm1),
    unary_check("log", log, {0.3, 3}),
    unary_check("log1p", log1p, {-0.6, 2}),
    unary_check("sqrt", sqrt, {0.3, 3}),
    unary_check("rsqrt", rsqrt, {0.4, 3}),
    unary_check("sin", sin, {-4, 4}),
    unary_check("cos", cos, {-4, 4}),
    unary_check("erf", erf),
}};

DeclaredChecks const activation_checks{{
    unary_check("tanh", tanh),
    unary_check("sigmoid", sigmoid),
    unary_check("softplus", softplus, {-3, 3}),
    unary_check("relu", relu, {0.1, 2}),
    unary_check("relu (off)", relu, {-2, -0.1}),
    unary_check("silu", silu, {-3, 3}),
    unary_check("gelu", gelu, {-3, 3}),
    unary_check("gelu_exact", gelu_exact, {-3, 3}),
}};

DeclaredChecks const comparison_checks{{
    binary_check("greater", greater, {}, {}, false),
    binary_check("greater_equal", greater_equal, {}, {}, false),
    binary_check("less", less, {}, {}, false),
    binary_check("less_equal", less_equal, {}, {}, false),
    binary_check("equal", equal, {}, {}, false),
    binary_check("not_equal", not_equal, {}, {}, false),
}};

DeclaredChecks const selection_checks{{
    binary_check("maximum", maximum, {-2, 0.4}, {0.5, 2}),
    binary_check("maximum", maximum, {0.5, 2}, {-2, 0.4}),
    binary_check("minimum", minimum, {-2, 0.4}, {0.5, 2}),
    unary_check("abs", abs, {0.1, 2}),
    unary_check("abs (negative)", abs, {-2, -0.1}),
    unary_check("clamp", [](Tensor const& x) { return clamp(x, -3, 0.9); }, {-2, 0.8}),
    {"where",
     {several({{3, 1, 4}, {2, 4}}, [](Tensors const& x) { return where(ends(x[0]), x[0], x[1]); })},
     {fails("where: shapes do not broadcast: [2] and [3]", where, zeros({2}), zeros({3}), zeros({3}))}},
    {"masked_fill", {one({3, 4}, [](Tensor const& x) { return masked_fill(x, ends(x), -7); })}},
    {"stop_gradient", {one({3, 4}, stop_gradient)}, {}, false},
}};

}  // namespace

}  // namespace heed::test
