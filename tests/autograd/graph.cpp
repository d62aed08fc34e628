#include "autograd/graph_memory.hpp"
#include "tests/autograd/tensors.hpp"
#include "tests/refusal.hpp"

using namespace heed;
using doctest::Approx, test::difference, test::leaf, test::normal, test::normal_leaf, test::refusal, test::scalar_leaf, test::Values,
    test::vector_of;

namespace {

/// x², with a rule that throws when it is asked.
Tensor broken_square(Tensor const& x) {
  return record("broken_square", {x}, (x * x).detach(), keep_nothing,
                [](BackwardContext const&) -> std::vector<Tensor> { throw Error("broken_square: no derivative"); });
}

}  // namespace

TEST_SUITE("graph") {
  TEST_CASE("backward: gradients arrive in the leaves, and add up over walks") {
    Tensor const x = leaf({1, 2, 3}), y = leaf({4, 5, 6});
    CHECK(!x.grad().defined());
    sum(x * y).backward();
    CHECK(x.grad().to_vector() == Values{4, 5, 6});
    CHECK(y.grad().to_vector() == Values{1, 2, 3});
    sum(x * x).backward();
    CHECK(x.grad().to_vector() == Values{6, 9, 12});
    CHECK(y.grad().to_vector() == Values{1, 2, 3});
    CHECK(!x.grad().requires_grad());
  }

  TEST_CASE("backward and grad: each gradient has an array of its own, whatever rule made it") {
    struct Form {
      std::string name;
      std::function<Tensor(Tensor const& a, Tensor const& b)> of;
    };
    auto const halve = [](Tensor gradient) {
      for (double& value : gradient.mutable_data<double>()) value /= 2;
    };
    for (Form const &form :
         std::vector<Form>{{"a + b", [](Tensor const&a, Tensor const&b) { return a + b; }},
                           {"a + b + a", [](Tensor const&a, Tensor const&b) { return a + b + a; }},
                           {"a as it is, and b", [](Tensor const&a, Tensor const&b) { return reshape(a, {2}) + b; }},
                           {"a · 1", [](Tensor const&a, Tensor const&b) { return a * Tensor::ones({2}, DType::float64) + b; }},
                           {"a part", [](Tensor const&a, Tensor const&b) { return slice(concatenate({a, b}, 0), 0, 0, 2) + b; }},
                           {"a residual", [](Tensor const&a, Tensor const&b) { return linear(a, normal({2, 2}, "w"), {}, b); }},
                           {"where", [](Tensor const&a, Tensor const&b) { return where(Tensor::ones({2}, DType::float64), a, b) + b; }}}) {
      CAPTURE(form.name);
      for (bool const keep_graph : {false, true}) {
        Tensor const a = leaf({1, 2}), b = leaf({3, 4}), y = form.of(a, b), seed = vector_of({1, 10});
        Values const da = grad({y}, {a}, {seed})[0].to_vector(), db = grad({y}, {b}, {seed})[0].to_vector();
        std::vector<Tensor> const taken = grad({y}, {a, b, a}, {seed});
        for (Tensor const& each : taken) halve(each);
        backward(y, seed, keep_graph);
        halve(a.grad());
        halve(b.grad());
        for (Tensor const& half : {a.grad(), taken[0], taken[2]}) CHECK(half.to_vector() == Values{da[0] / 2, da[1] / 2});
        for (Tensor const& half : {b.grad(), taken[1]}) CHECK(half.to_vector() == Values{db[0] / 2, db[1] / 2});
        CHECK(seed.to_vector() == Values{1, 10});
        if (!keep_graph) continue;
        backward(y, seed);
        CHECK(a.grad().to_vector() == Values{1.5 * da[0], 1.5 * da[1]});
        CHECK(b.grad().to_vector() == Values{1.5 * db[0], 1.5 * db[1]});
      }
    }
  }

  TEST_CASE("gradients that a hook writes to or keeps, and that a graph holds, are the leaf's own") {
    Tensor a = leaf({1, 2}), b = leaf({3, 4});
    Tensor kept;
    a.on_gradient([&](Tensor const& gradient) {
      kept = gradient;
      kept.mutable_data<double>()[0] = 7;
      return Tensor();
    });
    sum(a + b).backward();
    kept.mutable_data<double>()[1] = 9;
    CHECK(a.grad().to_vector() == Values{7, 1});
    CHECK(b.grad().to_vector() == Values{1, 1});

    Tensor slope = b.grad();
    Tensor const y = sum(slope * b);
    sum(b * b).backward();  // adds to the leaf's gradient, not to what y has read
    backward(y, {}, true);
    CHECK(b.grad().to_vector() == Values{8, 10});
    slope.mutable_data<double>()[0] = 0;
    CHECK(refusal([&] { y.backward(); }).find("was written to after multiply had used it") != std::string::npos);
  }

  TEST_CASE("set_grad: copies, and refuses what is no gradient of the leaf; so does a hook's result") {
    Tensor x = leaf({1, 2}), given = vector_of({3, 4});
    x.set_grad(given);
    given.mutable_data<double>()[0] = 0;
    CHECK(x.grad().to_vector() == Values{3, 4});
    x.grad().mutable_data<double>()[1] = 0;
    CHECK(given.to_vector() == Values{0, 4});
    auto const refused = [&](Tensor const& gradient) { return refusal([&] { x.set_grad(gradient); }); };
    CHECK(refused(vector_of({1, 2, 3})) == "set_grad: the gradient is float64 [3], the tensor float64 [2]");
    CHECK(refused(Tensor::ones({1, 2}, DType::float64)) == "set_grad: the gradient is float64 [1, 2], the tensor float64 [2]");
    CHECK(refused(vector_of({1, 2}, DType::float32)) == "set_grad: the gradient is float32 [2], the tensor float64 [2]");
    CHECK(x.grad().to_vector() == Values{3, 0});
    x.set_grad({});
    CHECK_FALSE(x.grad().defined());
    x.on_gradient([](Tensor const&) { return vector_of({1, 2, 3}); });
    CHECK(refusal([&] { sum(x).backward(); }) == "on_gradient: the hook's gradient is float64 [3], the tensor's float64 [2]");
  }

  TEST_CASE("backward: of a leaf itself, and of what wants no gradient") {
    Tensor const x = scalar_leaf(3), pair = leaf({1, 2}) * 2;
    x.backward();
    CHECK(x.grad().item() == 1);
    auto const refused = [](Tensor const& y, Tensor const& seed = {}) { return refusal([&] { backward(y, seed); }); };
    CHECK(refused(Tensor::scalar(1, DType::float64)) == "backward: the tensor was not made from anything that requires a gradient");
    CHECK(refused(pair) == "backward: an output of shape [2] needs a seed (only one of a single element does not)");
    CHECK(refused(pair, vector_of({1, 1, 1})) == "backward: the seed is float64 [3], the output float64 [2]");
    CHECK(refused(pair, vector_of({1, 1}, DType::float32)) == "backward: the seed is float32 [2], the output float64 [2]");
  }

  TEST_CASE("backward: twice is an error that says what to do, with keep_graph it accumulates") {
    Tensor const x = scalar_leaf(2), y = tanh(x);
    double const once = 1 - std::tanh(2) * std::tanh(2);
    backward(y, {}, true);
    backward(y, {}, true);
    CHECK(x.grad().item() == Approx(2 * once).epsilon(1e-14));
    backward(y);
    CHECK(x.grad().item() == Approx(3 * once).epsilon(1e-14));
    for (auto const& walk : std::vector<std::function<void()>>{[&] { backward(y); }, [&] { grad(y, x); }})
      CHECK(refusal(walk) ==
            "backward: the graph behind tanh was freed by an earlier backward(); pass keep_graph, or use grad(), which keeps it");
    CHECK(x.grad().item() == Approx(3 * once).epsilon(1e-14));
    CHECK(y.item() == std::tanh(2));  // the value stays
  }

  TEST_CASE("backward: through a part that another walk has freed is an error that names it") {
    Tensor const x = leaf({0.5, 1});
    Tensor hidden;
    {
      ModelPart const part("encoder");
      hidden = exp(x);
    }
    backward(sum(hidden));
    CHECK(refusal([&] { backward(sum(hidden * hidden)); }) ==
          "backward: the graph behind exp in encoder was freed by an earlier backward(); pass keep_graph, or use grad(), which keeps it");
  }

  TEST_CASE("shared sub-expressions and diamonds: every path counts, every operation's rule runs once") {
    int calls = 0;
    Tensor const x = leaf({0.3, -0.7});
    Tensor const shared = record("doubled", {x}, scale(x, 2).detach(), keep_nothing, [&calls](BackwardContext const& s) {
      ++calls;
      return std::vector{scale(s.dy, 2)};
    });
    backward(sum(shared * shared + sin(shared) - shared));
    CHECK(calls == 1);
    Tensor const u = shared.detach();
    CHECK(difference(x.grad(), 2 * (2 * u + cos(u) - 1)) <= 1e-14);

    // 60 diamonds in a row have 2^60 paths
    Tensor const start = scalar_leaf(1);
    Tensor y = start;
    for (int i = 0; i < 60; ++i) y = scale(y, 0.5) + scale(y, 0.5);
    y.backward();
    CHECK(start.grad().item() == 1);
  }

  TEST_CASE("broadcasting is undone: a gradient has its leaf's shape") {
    Tensor const matrix = normal_leaf({2, 3, 4}, "matrix");
    for (Shape const& shape : std::vector<Shape>{{4}, {3, 1}, {2, 1, 1}, {1, 1, 4}, {}, {1}, {1, 3, 4}, {1, 1, 1}}) {
      CAPTURE(to_string(shape));
      Tensor const small = normal_leaf(shape, "small");
      sum(matrix * small).backward();
      CHECK(difference(small.grad(), sum_to(matrix.detach(), shape)) <= 1e-14);
    }
    CHECK(matrix.grad().shape() == matrix.shape());
  }

  TEST_CASE("gradients pass through conversions in the input's own precision") {
    Tensor const x = leaf({1.5, -2}, DType::float32), y = x.to(DType::float64);
    CHECK(y.dtype() == DType::float64);
    sum(y * y).backward();
    CHECK(x.grad().dtype() == DType::float32);
    CHECK(x.grad().to_vector() == Values{3, -4});
    Tensor const wide = scalar_leaf(1.0 / 3);
    sum(exp(wide.to(DType::float32))).backward();
    CHECK(wide.grad().dtype() == DType::float64);
    CHECK(wide.grad().item() == Approx(std::exp(1.0 / 3)).epsilon(1e-6));
    CHECK(!x.to(DType::int64).detach().requires_grad());
  }

  TEST_CASE("no path is no gradient: stop_gradient, detach, comparisons, constants") {
    Tensor const x = leaf({1, 2});
    sum(stop_gradient(x) * x + x.detach() * x + (x > 1.5)).backward();
    CHECK(x.grad().to_vector() == Values{2, 4});
  }

  TEST_CASE("grad: returns gradients and touches nothing else") {
    Tensor const x = leaf({1, 2}), unused = leaf({5, 5, 5}), hidden = x * x, y = sum(hidden * x);
    auto const found = grad({y}, {x, hidden, unused, y});
    CHECK(found[0].to_vector() == Values{3, 12});
    CHECK(found[1].to_vector() == Values{1, 2});
    CHECK(found[2].to_vector() == Values{0, 0, 0});
    CHECK(found[3].item() == 1);
    CHECK(!x.grad().defined());
    CHECK(!found[0].requires_grad());
    CHECK(grad(y, x).to_vector() == Values{3, 12});  // the graph is still there
    y.backward();
    CHECK(x.grad().to_vector() == Values{3, 12});
  }

  TEST_CASE("grad: several outputs with seeds, and only the rules on the way to what is asked") {
    Tensor const x = leaf({1, 2}), other = leaf({1, 2}), a = x * x, b = scale(x, 3);
    auto const seed = [](double value) { return Tensor::full({2}, value, DType::float64); };
    CHECK(grad({a, b}, {x}, {seed(1), seed(10)})[0].to_vector() == Values{32, 34});
    CHECK(grad({a, a}, {x}, {seed(1), seed(2)})[0].to_vector() == Values{6, 12});
    CHECK(grad(sum(a + broken_square(other)), x).to_vector() == Values{2, 4});
    CHECK(refusal([&] { grad({a, b}, {x}, {seed(1)}); }) == "grad: 1 seeds for 2 outputs");
    CHECK(refusal([&] { grad({a}, {x}); }) == "grad: an output of shape [2] needs a seed (only one of a single element does not)");
    CHECK(refusal([&] { grad(sum(a), seed(1)); }) == "grad: an input does not require a gradient");
    CHECK(grad({seed(1)}, {x}, {seed(1)})[0].to_vector() == Values{0, 0});  // a constant has no derivative
  }

  TEST_CASE("create_graph: derivatives of every order") {
    Tensor const x = scalar_leaf(1.7);
    Tensor const first = grad(x * x * x, x, true), second = grad(first, x, true), third = grad(second, x, true);
    CHECK(first.item() == Approx(3 * 1.7 * 1.7).epsilon(1e-14));
    CHECK(second.item() == Approx(6 * 1.7).epsilon(1e-14));
    CHECK(third.item() == Approx(6).epsilon(1e-14));
    CHECK(!x.grad().defined());

    Tensor wave = sin(x);
    for (int order = 1; order <= 8; ++order) {
      CAPTURE(order);
      wave = grad(wave, x, true);
      double const shifted = std::sin(1.7 + order * std::acos(-1) / 2);
      CHECK(wave.item() == Approx(shifted).epsilon(1e-12));
    }
  }

  TEST_CASE("create_graph: a gradient may be a part of what is walked next") {
    // the gradient penalty of Gulrajani et al. 2017: p = Σ (d/dx Σ w x²)² = Σ 4 w² x², dp/dw = 8 w x²
    Tensor const x = leaf({1, 2}), w = leaf({3, 5});
    Tensor const slope = grad(sum(w * x * x), x, true);
    sum(slope * slope).backward();
    CHECK(w.grad().to_vector() == Values{24, 160});
    CHECK(x.grad().to_vector() == Values{72, 400});
  }

  TEST_CASE("hessian_vector_product: of a quadratic form, a product and a linear function") {
    Tensor const a = normal({5, 5}, "a"), x = normal({5}, "x"), v = normal({5}, "v");
    Tensor const product = hessian_vector_product([&](Tensor const& p) { return sum(p * matmul(a, p)); }, x, v);
    CHECK(difference(product, matmul(a + transpose(a), v)) <= 1e-13);

    // f = exp(x₀ x₁): H = f·[[x₁², 1 + x₀x₁], [1 + x₀x₁, x₀²]]
    auto const f = [](Tensor const& p) { return exp(reshape(slice(p, 0, 0, 1) * slice(p, 0, 1, 2), {})); };
    Values const row = hessian_vector_product(f, vector_of({0.3, 0.8}), vector_of({1, 2})).to_vector();
    double const value = std::exp(0.24);
    CHECK(row[0] == Approx(value * (0.64 + 2 * 1.24)).epsilon(1e-13));
    CHECK(row[1] == Approx(value * (1.24 + 2 * 0.09)).epsilon(1e-13));
    CHECK(hessian_vector_product([](Tensor const& p) { return sum(scale(p, 3)); }, x, v).to_vector() == Values(5, 0));
    NoGrad const off;  // says what it needs itself
    CHECK(hessian_vector_product([](Tensor const& p) { return sum(p * p); }, x, v).at(0) == Approx(2 * v.at(0)));
  }

  TEST_CASE("jvp and jacobian: of a linear map, a softmax and a constant") {
    Tensor const a = normal({3, 4}, "a"), x = normal({4}, "x"), v = normal({4}, "v"), y = softmax(x);
    auto const product = [&](Tensor const& p) { return matmul(a, p); };
    CHECK(jvp(product, x, v).to_vector() == product(v).to_vector());
    auto const of_softmax = [](Tensor const& p) { return softmax(p); };
    CHECK(difference(jvp(of_softmax, x, v), matmul(jacobian(of_softmax, x), v)) <= 1e-13);
    CHECK(jvp([](Tensor const&) { return vector_of({1, 2}); }, x, v).to_vector() == Values{0, 0});
    CHECK(jvp([](Tensor const& p) { return p; }, x, v).to_vector() == v.to_vector());

    CHECK(jacobian(product, x).to_vector() == a.to_vector());
    Tensor const identity = one_hot(Tensor::arange(4, DType::int64), 4, DType::float64);
    CHECK(difference(jacobian(of_softmax, x), reshape(y, {4, 1}) * (identity - y)) <= 1e-13);
    CHECK(jacobian([](Tensor const& p) { return reshape(p, {2, 2}); }, reshape(x, {2, 2})).shape() == Shape{4, 4});
    CHECK(jacobian([&](Tensor const&) { return a; }, x).to_vector() == Values(48, 0));
  }

  TEST_CASE("NoGrad: nothing is recorded while it lives; WithGrad inside records again") {
    Tensor const x = scalar_leaf(2);
    CHECK(recording());
    {
      NoGrad const off;
      CHECK(!recording());
      CHECK(!(x * x).requires_grad());
      {
        WithGrad const on;
        CHECK((x * x).requires_grad());
      }
      CHECK(!(x * x).requires_grad());
    }
    CHECK((x * x).requires_grad());
    CHECK(refusal([&] {
            NoGrad const off;
            throw Error("out of it");
          }) == "out of it");
    CHECK(recording());
  }

  TEST_CASE("hooks: see the whole gradient, in the order they were set, and may replace it") {
    Tensor x = leaf({1, 2}), hidden = x * x;
    std::vector<std::string> seen;
    hidden.on_gradient([&](Tensor const& g) {
      seen.push_back("hidden " + std::to_string(static_cast<int>(g.at(0))));
      return Tensor();
    });
    hidden.on_gradient([&](Tensor const& g) {
      seen.push_back("doubled");
      return scale(g, 2);
    });
    x.on_gradient([&](Tensor const& g) {
      seen.push_back("leaf " + std::to_string(static_cast<int>(g.at(0))));
      return scale(g, 0.5);
    });
    Tensor const y = sum(hidden + scale(hidden, 3) + x);
    CHECK(grad(y, x).to_vector() == Values{8.5, 16.5});  // ½ (2·4·2x + 1)
    CHECK(seen == std::vector<std::string>{"hidden 4", "doubled", "leaf 17"});
    y.backward();
    CHECK(x.grad().to_vector() == Values{8.5, 16.5});
    CHECK(seen.size() == 6);
    CHECK(refusal([] { Tensor::scalar(1, DType::float32).on_gradient([](Tensor const& g) { return g; }); }) ==
          "on_gradient: the tensor does not require a gradient");
  }

  TEST_CASE("anomaly mode: names the operation and the part, forward") {
    Anomaly const watching;
    CHECK(refusal<NonFinite>([] { log(vector_of({1, 0})); }) == "log: infinity at element 1 of [2]");
    ModelPart const part("blocks.0.mlp");
    CHECK(refusal<NonFinite>([] { log(leaf({1, 2, -1})); }) == "log in blocks.0.mlp: NaN at element 2 of [3]");
    {
      ModelPart const inner("blocks.0.mlp.up");
      CHECK(refusal<NonFinite>([] { exp(scalar_leaf(1000)); }) == "exp in blocks.0.mlp.up: infinity at element 0 of []");
    }
    CHECK(refusal<NonFinite>([] { exp(scalar_leaf(1000)); }) == "exp in blocks.0.mlp: infinity at element 0 of []");
    CHECK(exp(scalar_leaf(1)).requires_grad());
  }

  TEST_CASE("anomaly mode: names the operation and the part, backward") {
    Tensor const x = leaf({4, 0, 1});
    Tensor y;
    {
      ModelPart const part("encoder");
      y = sqrt(x);
    }
    auto const walk = [&] { backward(sum(y), {}, true); };
    walk();  // silent without
    CHECK(std::isinf(x.grad().at(1)));
    Anomaly const watching;
    CHECK(refusal<NonFinite>(walk) == "the gradient of sqrt in encoder: infinity at element 1 of [3]");
    CHECK(refusal<NonFinite>([&] { backward(sum(scale(x, std::nan("")))); }).starts_with("scale: NaN"));
    { Anomaly const again; }
    CHECK(refusal<NonFinite>([&] { exp(scalar_leaf(1000)); }) != "");  // still on: modes nest
    CHECK(refusal<NonFinite>([] { backward(exp(scalar_leaf(1))); }) == "");
  }

  TEST_CASE("an exception inside a rule leaves the engine as it was") {
    Tensor const x = scalar_leaf(2);
    for (int round = 0; round < 3; ++round) {
      CHECK(refusal([&] { backward(broken_square(x * x)); }) == "broken_square: no derivative");
      CHECK(refusal([&] { grad(broken_square(x), x, true); }) == "broken_square: no derivative");
      CHECK(recording());
    }
    CHECK(!x.grad().defined());
    backward(x * x);
    CHECK(x.grad().item() == 4);

    Tensor hooked = scalar_leaf(1);
    hooked.on_gradient([](Tensor const&) -> Tensor { throw Error("a hook's own"); });
    CHECK(refusal([&] { backward(hooked * hooked); }) == "a hook's own");
    CHECK(recording());
  }

  TEST_CASE("a rule that gives the wrong number of gradients is an error that names it") {
    Tensor const x = scalar_leaf(2);
    Tensor const y = record("careless", {x, x}, x.detach(), keep_nothing, [](BackwardContext const& s) { return std::vector{s.dy}; });
    CHECK(refusal([&] { backward(y); }) == "backward: the rule of careless gave 1 gradients for 2 inputs");
  }

  TEST_CASE("rules see what they asked to keep, and no more") {
    Tensor const x = leaf({1, 2});
    auto const elements_are_there = [&](Keep keep) {
      std::string there;
      auto const look = [](Tensor const& t) { return refusal([&] { t.at(0); }).empty(); };
      Tensor const y = record("probe", {x, x}, x.clone(), keep, [&](BackwardContext const& s) {
        there = std::string(look(s.x(0)) ? "a" : "") + (look(s.x(1)) ? "b" : "") + (look(s.y) ? "y" : "");
        CHECK(s.x(0).shape() == x.shape());
        CHECK(s.y.shape() == x.shape());
        return std::vector{s.dy, s.dy};
      });
      backward(sum(y));
      return there;
    };
    CHECK(elements_are_there(keep_nothing) == "");
    CHECK(elements_are_there(keep_output) == "y");
    CHECK(elements_are_there({{true}, false}) == "a");
    CHECK(elements_are_there({{false, true}, true}) == "by");
    CHECK(elements_are_there(keep_inputs) == "ab");
  }

  TEST_CASE("gradients that rules add to in place: sums, seeds and shared arrays stay right") {
    Tensor const x = normal_leaf({6, 5}, "x"), w = normal_leaf({5, 5}, "w"), v = normal_leaf({5, 5}, "v"), gain = normal_leaf({5}, "scale");
    auto const loss = [&](bool kernels) {
      auto const project = [&](Tensor const& a, Tensor const& weight) {
        return kernels ? linear(a, weight, {}) : matmul(a, transpose(weight));
      };
      Tensor const h = x * 2.0;
      Tensor const normed = kernels ? rms_norm(h, gain) : h * rsqrt(mean(h * h, {-1}, true) + 1e-5) * gain;
      Tensor const y = project(normed, w) * project(normed, v) + project(h, w) + project(h, h.size(0) == 6 ? v : w);
      return sum(y * y + h + (kernels ? linear(h, w, {}, h) : project(h, w) + h));  // h as input and residual of one product
    };
    auto const fast = grad({loss(true)}, {x, w, v, gain}), plain = grad({loss(false)}, {x, w, v, gain});
    for (std::size_t i = 0; i < fast.size(); ++i) CHECK(difference(fast[i], plain[i]) <= 1e-12);
    Tensor const seed = normal({6, 5}, "seed"), h = x * 1.0;
    auto const before = seed.to_vector();
    static_cast<void>(grad({h, linear(h, w, {})}, {x}, {seed, seed}));
    CHECK(seed.to_vector() == before);  // the caller's array is no place to sum in
  }

  TEST_CASE("functions of the graph speak of their own arguments") {
    Tensor const x = vector_of({1, 2}), other = vector_of({1, 2, 3}), narrow = vector_of({1, 2}, DType::float32);
    auto const square = [](Tensor const& p) { return sum(p * p); };
    auto const each = [](Tensor const& p) { return p * p; };
    CHECK(refusal([&] { hessian_vector_product(square, x, other); }) == "hessian_vector_product: v is float64 [3], x float64 [2]");
    CHECK(refusal([&] { hessian_vector_product(square, x, narrow); }) == "hessian_vector_product: v is float32 [2], x float64 [2]");
    CHECK(refusal([&] { hessian_vector_product(each, x, x); }) == "hessian_vector_product: f must give a single number, not [2]");
    CHECK(refusal([&] { jvp(each, x, other); }) == "jvp: v is float64 [3], x float64 [2]");
    CHECK(refusal([&] { jacobian(each, Tensor::zeros({2}, DType::int64)); }) == "jacobian: x must be real numbers, not int64");
    CHECK(refusal([&] { jvp(each, {}, x); }) == "jvp: x must be real numbers, not undefined");
  }
}
