#include "autograd/graph_memory.hpp"
#include "tests/autograd/tensors.hpp"

using namespace heed;

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

/// Gradients, and the gradients of a sum of their squares.
std::vector<Tensor> first_and_second(Network const& network) {
  auto all = grad({network.loss()}, network.all(), {}, true);
  Tensor squares = Tensor::scalar(0, DType::float64);
  for (Tensor const& g : all) squares = squares + sum(g * g);
  for (Tensor const& g : grad({squares}, network.all())) all.push_back(g);
  return all;
}

}  // namespace

TEST_SUITE("recompute") {
  TEST_CASE("gradients of any order have the same bits whether norms and activations are kept or recomputed") {
    Network const network;
    auto const kept = all_kept([&] { return first_and_second(network); });
    From const all(0);
    for (int const time : {1, 2}) {
      CAPTURE(time);
      CHECK(test::same_bits(first_and_second(network), kept));
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
}
