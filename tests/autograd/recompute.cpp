#include "autograd/graph_memory.hpp"
#include "tests/autograd/tensors.hpp"

using namespace heed;
using doctest::Approx, test::leaf, test::normal_leaf, test::scalar_leaf, test::Values, test::vector_of;

namespace {

/// While it lives, results of so many bytes and more are recomputed.
using From = test::With<recompute_bytes, set_recompute_bytes>;

/// What f gives while everything is kept.
template <class F>
auto all_kept(F const& f) {
  From const never(Index{1} << 60);
  return f();
}

/// A perceptron after a norm, with a gate: norms and activations of one another, each used more than once.
struct Network {
  Tensor loss() const {
    Tensor const normed = layer_norm(x, weight, bias);
    Tensor const hidden = gelu(rms_norm(silu(linear(normed, gate, {})), weight)) * linear(normed, up, {});
    return sum(tanh(linear(hidden, down, {}, normed)));
  }
  std::vector<Tensor> all() const { return {x, up, gate, down, weight, bias}; }

  void clear() const {
    for (Tensor parameter : all()) parameter.clear_grad();
  }

  Tensor x = test::normal_leaf({30, 40}, "x"), up = test::normal_leaf({40, 40}, "up"), gate = test::normal_leaf({40, 40}, "gate"),
         down = test::normal_leaf({40, 40}, "down"), weight = test::normal_leaf({40}, "weight"), bias = test::normal_leaf({40}, "bias");
};

/// Gradients of so many orders, each but the first of the sum of the squares of those before.
std::vector<Tensor> derivatives(Tensor total, std::vector<Tensor> const& inputs, int orders) {
  std::vector<Tensor> all;
  for (int order = 1; order <= orders; ++order) {
    auto const gradients = grad({total}, inputs, {}, order < orders);
    total = Tensor::scalar(0, DType::float64);
    for (Tensor const& g : gradients) {
      all.push_back(g.detach());
      total = total + sum(g * g);
    }
  }
  return all;
}

}  // namespace

TEST_SUITE("recompute") {
  TEST_CASE("gradients of any order have the same bits whether norms and activations are kept or recomputed") {
    Network const network;
    auto const found = [&] { return derivatives(network.loss(), network.all(), 2); };
    auto const kept = all_kept(found);
    From const all(0);
    for (int const time : {1, 2}) {
      CAPTURE(time);
      CHECK(test::same_bits(found(), kept));
    }
  }

  TEST_CASE("backward too, also over a graph that is kept and walked again") {
    Network const network;
    auto const walked = [&](int times) {
      network.clear();
      Tensor const loss = network.loss();
      for (int i = 1; i < times; ++i) backward(loss, {}, true);
      backward(loss);
      std::vector<Tensor> gradients;
      for (Tensor const& parameter : network.all()) gradients.push_back(parameter.grad());
      return gradients;
    };
    for (int const times : {1, 2}) {
      CAPTURE(times);
      auto const kept = all_kept([&] { return walked(times); });
      From const all(0);
      CHECK(test::same_bits(walked(times), kept));
    }
  }

  TEST_CASE("what is recomputed is not held meanwhile, and nothing stays behind") {
    Network const network;
    auto const held = [&] {
      auto const before = memory_use().live;
      Tensor const loss = network.loss();
      return memory_use().live - before;
    };
    Index const kept = all_kept(held);
    From const all(0);
    Index const array = 30 * 40 * 8;
    CHECK(held() <= kept - 4 * array);  // the norm, silu of the gate, its norm, gelu of that
    network.loss().backward();
    network.clear();
    auto const before = memory_use().live;
    network.loss().backward();
    network.clear();
    CHECK(memory_use().live == before);
  }

  TEST_CASE("a graph that stays holds nothing of what was recomputed for a walk over it, under another shape neither") {
    From const all(0);
    Network const network;
    Tensor const loss = sum(linear(gelu(reshape(gelu(reshape(network.x, {15, 2, 40})), {5, 6, 40})), network.up, {})) + network.loss();
    auto const before = memory_use().live;
    grad({loss}, network.all());
    CHECK(memory_use().live == before);
  }

  TEST_CASE("a chain of 200,000 results, each recomputed from the one before") {
    From const all(0);
    Tensor const x = test::leaf({0.5});
    Tensor y = silu(x);
    for (int i = 1; i < 200'000; ++i) y = silu(y);
    Tensor const square = y * y;
    CHECK(grad(square, x).elements() == 1);
    backward(square);
    CHECK(x.grad().elements() == 1);
  }

  TEST_CASE("small results are kept") {
    CHECK(recompute_bytes() == 2 << 20);
    Tensor const x = Tensor::ones({8, 8}, DType::float64).set_requires_grad();
    auto const before = memory_use().live;
    Tensor const y = sum(gelu(x) * gelu(x));
    CHECK(memory_use().live - before >= 2 * 8 * 8 * 8);
  }

  TEST_CASE("checkpoint: the same bits as without it, for inputs and for parameters it holds") {
    Tensor const weight = normal_leaf({6, 6}, "weight", DType::float32), bias = normal_leaf({6}, "bias", DType::float32);
    auto const block = [&](std::vector<Tensor> const& in) { return gelu(linear(in[0], weight, bias)) + in[1]; };
    auto const run = [&](bool recompute) {
      Tensor const x = normal_leaf({4, 6}, "x", DType::float32), z = normal_leaf({4, 6}, "z", DType::float32);
      auto const made = [&](std::vector<Tensor> const& in) { return recompute ? checkpoint(block, in) : block(in); };
      Tensor const first = made({x, z}), y = made({first, x});  // one after the other, the weights shared
      Tensor const loss = sum(y * y);
      std::vector<Values> all{y.to_vector()};
      for (Tensor const& g : grad({loss}, {x, z, weight, bias, first})) all.push_back(g.to_vector());
      CHECK(!weight.grad().defined());
      loss.backward();
      for (Tensor leaf : {x, z, weight, bias}) {
        all.push_back(leaf.grad().to_vector());
        leaf.clear_grad();
      }
      return all;
    };
    CHECK(run(true) == run(false));
  }

  TEST_CASE("checkpoint: a leaf that is an input, is held, and is behind an input counts once for each") {
    Tensor const p = scalar_leaf(3);
    auto const f = [&](std::vector<Tensor> const& in) { return in[0] * p; };
    CHECK(grad(checkpoint(f, {p}), p).item() == 6);       // p²
    CHECK(grad(checkpoint(f, {p * p}), p).item() == 27);  // p³
    CHECK(grad(checkpoint(f, {checkpoint(f, {p})}), p).item() == 27);
    Tensor const slope = grad(checkpoint(f, {checkpoint(f, {p})}), p, true);
    CHECK(slope.item() == 27);
    CHECK(grad(slope, p, true).item() == 18);
    CHECK(grad(grad(slope, p, true), p).item() == 6);
    backward(checkpoint(f, {p * p}));
    CHECK(p.grad().item() == 27);
  }

  TEST_CASE("checkpoint: hooks run once, with the whole gradient") {
    Tensor held = scalar_leaf(3), given = scalar_leaf(5);
    int calls = 0;
    auto const halve = [&](Tensor const& g) { return ++calls, scale(g, 0.5); };
    held.on_gradient(halve);
    given.on_gradient(halve);
    auto const f = [&](std::vector<Tensor> const& in) { return in[0] * held; };
    backward(checkpoint(f, {given}) + scale(held, 10));
    CHECK(given.grad().item() == 1.5);
    CHECK(held.grad().item() == 7.5);
    CHECK(calls == 2);
  }

  TEST_CASE("checkpoint: inside checkpoint, under create_graph, with constants, with tokens, with nothing to derive") {
    Tensor const x = leaf({0.2, -0.4, 0.9});
    auto const inner = [](std::vector<Tensor> const& in) { return tanh(in[0]) * in[0]; };
    auto const outer = [&](std::vector<Tensor> const& in) { return sin(checkpoint(inner, in)); };
    auto const plain = [&](std::vector<Tensor> const& in) { return sin(inner(in)); };
    Tensor const a = grad(sum(checkpoint(outer, {x})), x, true), b = grad(sum(plain({x})), x, true);
    CHECK(a.to_vector() == b.to_vector());
    Tensor const second_a = grad(sum(a * a), x), second_b = grad(sum(b * b), x);
    for (Index i = 0; i < 3; ++i) CHECK(second_a.at(i) == Approx(second_b.at(i)).epsilon(1e-13));

    Tensor const table = normal_leaf({5, 2}, "table"), tokens = vector_of({4, 0, 4}).to(DType::int64);
    backward(sum(checkpoint([&](std::vector<Tensor> const& in) { return embedding(table, in[0]); }, {tokens})));
    CHECK(table.grad().to_vector() == Values{1, 1, 0, 0, 0, 0, 0, 0, 2, 2});
    Tensor const constant = Tensor::ones({3}, DType::float64);
    CHECK(!checkpoint(inner, {constant}).requires_grad());
    CHECK(grad(sum(checkpoint([](std::vector<Tensor> const& in) { return in[0] * in[1]; }, {constant, x})), x).to_vector() ==
          Values{1, 1, 1});
    NoGrad const off;
    CHECK(!checkpoint(inner, {x}).requires_grad());
  }

  TEST_CASE("checkpoint: keeps the input of a segment instead of all that is in it") {
    auto const deep = [](std::vector<Tensor> const& in) {
      Tensor y = in[0];
      for (int i = 0; i < 16; ++i) y = sin(y);
      return y;
    };
    auto const peak = [&](bool recompute, int order) {
      Tensor const x = normal_leaf({1 << 14}, "x");
      auto const f = [&](Tensor const& at) {
        Tensor y = at;
        for (int segment = 0; segment < 16; ++segment) y = recompute ? checkpoint(deep, {y}) : deep({y});
        return sum(y);
      };
      return test::peak_of([&] {
        if (order == 1)
          f(x).backward();
        else
          hessian_vector_product(f, x, Tensor::ones(x.shape(), x.dtype()));
      });
    };
    Index const array = Index{8} << 14;
    CHECK(peak(false, 1) > 250 * array);
    CHECK(peak(true, 1) < 45 * array);  // 16 inputs, one segment of 16, and what flows
    CHECK(peak(false, 2) > 500 * array);
    CHECK(peak(true, 2) < 80 * array);  // 16 inputs and their gradients, both graphs of one segment
  }

  TEST_CASE("by_rows: value and derivatives of every order, of more rows than go at a time, without what is between") {
    Tensor const weight = normal_leaf({5, 12}, "weight"), bias = normal_leaf({5}, "bias"), down = normal_leaf({3, 5}, "down");
    auto const f = [](std::vector<Tensor> const& in) { return linear(tanh(linear(in[0], in[1], in[2])), in[3], {}); };
    for (Shape const& shape : {Shape{3, 1100, 12}, Shape{4, 12}, Shape{12}}) {
      std::vector<Tensor> const inputs{normal_leaf(shape, "x"), weight, bias, down};
      auto const results = [&](Tensor const& y) {
        auto all = derivatives(sum(y * y), inputs, 3);
        all.push_back(y.detach());
        return all;
      };
      auto const found = results(by_rows(f, inputs)), expected = results(f(inputs));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        CHECK(test::relative_difference(found[i], expected[i]) <= 1e-11);
      }
    }
  }
}
