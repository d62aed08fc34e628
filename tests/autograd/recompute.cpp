#include "autograd/graph_memory.hpp"
#include "autograd/memory.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "autograd/random.hpp"
#include "tests/test.hpp"

using namespace heed;

namespace {

/// While it lives, results of so many bytes and more are recomputed.
class From {
 public:
  explicit From(std::int64_t bytes) : before_(recompute_bytes()) { set_recompute_bytes(bytes); }
  ~From() { set_recompute_bytes(before_); }
  From(From const&) = delete;
  From& operator=(From const&) = delete;

 private:
  std::int64_t before_;
};
constexpr std::int64_t never = std::int64_t{1} << 60;

/// A perceptron after a norm, with a gate: norms and activations of one another, each used more than once.
struct Network {
  Network() {
    for (auto* parameter : {&x, &up, &gate, &down, &weight, &bias}) parameter->set_requires_grad();
  }
  Tensor loss() const {
    Tensor const normed = layer_norm(x, weight, bias);
    Tensor const hidden = gelu(rms_norm(silu(linear(normed, gate, {})), weight)) * linear(normed, up, {});
    return sum(tanh(linear(hidden, down, {}, normed)));
  }
  std::vector<Tensor> all() const { return {x, up, gate, down, weight, bias}; }

  static Tensor drawn(char const* name, Shape const& shape) { return Tensor::normal(shape, Stream(1, name), DType::float64); }
  Tensor x = drawn("x", {30, 40}), up = drawn("up", {40, 40}), gate = drawn("gate", {40, 40}), down = drawn("down", {40, 40}),
         weight = drawn("weight", {40}), bias = drawn("bias", {40});
};

std::vector<double> flat(std::vector<Tensor> const& tensors) {
  std::vector<double> values;
  for (Tensor const& tensor : tensors) {
    for (double const value : tensor.to_vector()) values.push_back(value);
  }
  return values;
}

/// Gradients, and the gradients of a sum of their squares.
std::vector<double> first_and_second(Network const& network) {
  auto const first = grad({network.loss()}, network.all(), {}, true);
  Tensor squares = Tensor::scalar(0, DType::float64);
  for (Tensor const& g : first) squares = squares + sum(g * g);
  auto all = flat(first);
  for (double const value : flat(grad({squares}, network.all()))) all.push_back(value);
  return all;
}

}  // namespace

TEST_SUITE("recompute") {
  TEST_CASE("gradients of any order have the same bits whether norms and activations are kept or recomputed") {
    Network const network;
    std::vector<double> kept;
    {
      From const large(never);
      kept = first_and_second(network);
    }
    From const all(0);
    CHECK(first_and_second(network) == kept);
    CHECK(first_and_second(network) == kept);
  }

  TEST_CASE("backward too, also over a graph that is kept and walked again") {
    Network const network;
    auto const walked = [&](int times) {
      for (Tensor parameter : network.all()) parameter.clear_grad();
      Tensor const loss = network.loss();
      for (int i = 1; i < times; ++i) backward(loss, {}, true);
      backward(loss);
      std::vector<Tensor> gradients;
      for (Tensor const& parameter : network.all()) gradients.push_back(parameter.grad());
      return flat(gradients);
    };
    std::vector<double> once, twice;
    {
      From const large(never);
      once = walked(1);
      twice = walked(2);
    }
    From const all(0);
    CHECK(walked(1) == once);
    CHECK(walked(2) == twice);
  }

  TEST_CASE("what is recomputed is not held meanwhile, and nothing stays behind") {
    Network const network;
    auto const held = [&] {
      auto const before = memory_use().live;
      Tensor const loss = network.loss();
      return memory_use().live - before;
    };
    std::int64_t kept = 0;
    {
      From const large(never);
      kept = held();
    }
    From const all(0);
    std::int64_t const array = 30 * 40 * 8;
    CHECK(held() <= kept - 4 * array);  // the norm, silu of the gate, its norm, gelu of that
    network.loss().backward();
    for (Tensor parameter : network.all()) parameter.clear_grad();
    auto const before = memory_use().live;
    network.loss().backward();
    for (Tensor parameter : network.all()) parameter.clear_grad();
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
    Tensor x = Tensor::full({1}, 0.5, DType::float64);
    x.set_requires_grad();
    Tensor y = silu(x);
    for (int i = 1; i < 200'000; ++i) y = silu(y);
    Tensor const square = y * y;
    CHECK(grad(square, x).elements() == 1);
    backward(square);
    CHECK(x.grad().elements() == 1);
  }

  TEST_CASE("small results are kept") {
    CHECK(recompute_bytes() == 2 << 20);
    Tensor x = Tensor::ones({8, 8}, DType::float64);
    x.set_requires_grad();
    auto const before = memory_use().live;
    Tensor const y = sum(gelu(x) * gelu(x));
    CHECK(memory_use().live - before >= 2 * 8 * 8 * 8);
  }
}
