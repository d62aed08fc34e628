#include "autograd/memory.hpp"

#include <thread>

#include "autograd/attention/fused_attention.hpp"
#include "nn/optimizer.hpp"
#include "tests/autograd/tensors.hpp"

using namespace heed;

namespace {

/// Two layers with everything that training does at every step.
class SmallNetwork {
 public:
  SmallNetwork() : parameters_(1, DType::float32) {
    embedding_ = parameters_.add("embedding", {20, 32}, Initial::normal(1), WeightDecay::on);
    up_ = parameters_.add("up", {64, 32}, Initial::normal(0.2), WeightDecay::on);
    up_bias_ = parameters_.add("up_bias", {64}, Initial::constant(0), WeightDecay::off);
    norm_ = parameters_.add("norm", {64}, Initial::constant(1), WeightDecay::off);
    norm_bias_ = parameters_.add("norm_bias", {64}, Initial::constant(0), WeightDecay::off);
    down_ = parameters_.add("down", {20, 64}, Initial::normal(0.2), WeightDecay::on);
    optimizer_ = make_optimizer(optimizer_choice(), parameters_);
  }

  Parameters& parameters() { return parameters_; }

  Tensor loss() const {
    std::vector<Index> tokens, targets;
    for (Index i = 0; i < 50; ++i) tokens.push_back(i % 20), targets.push_back(i * i % 20);
    Tensor const x = embedding(embedding_, Tensor::of(tokens, {5, 10}));
    Tensor const hidden = layer_norm(gelu(linear(x, up_, up_bias_)), norm_, norm_bias_);
    return cross_entropy(matmul(hidden, down_, false, true), Tensor::of(targets, {5, 10}));
  }

  double step() {
    parameters_.clear_gradients();
    Tensor const value = loss();
    value.backward();
    optimizer_->step(1e-2, clip_factor(gradient_norm(parameters_), 1));
    return value.item();
  }

 private:
  Parameters parameters_;
  Tensor embedding_, up_, up_bias_, norm_, norm_bias_, down_;
  std::unique_ptr<Optimizer> optimizer_;
};

Tensor deep_sine(Tensor const& x) {
  Tensor y = x;
  for (int i = 0; i < 50; ++i) y = sin(y);
  return y;
}

}  // namespace

TEST_SUITE("memory") {
  TEST_CASE("after the first step training asks the system for nothing") {
    SmallNetwork network;
    double const first = network.step();
    MemoryUse const before = memory_use();
    double last = 0;
    for (int i = 0; i < 10; ++i) last = network.step();
    MemoryUse const after = memory_use();
    CHECK(after.system_allocations == before.system_allocations);
    CHECK(after.reserved == before.reserved);
    CHECK(after.live == before.live);
    CHECK(last < first);
  }

  TEST_CASE("backward frees what the graph has kept") {
    SmallNetwork network;
    network.step();
    Index const with_gradients = memory_use().live;
    network.parameters().clear_gradients();
    Index const before = memory_use().live;
    Index const gradients = with_gradients - before;
    Tensor const loss = network.loss();
    CHECK(memory_use().live > before + 5 * 10 * 64 * 4 * 2);  // at least the activations before gelu and before the norm
    backward(loss, {}, true);
    CHECK(memory_use().live > before + gradients + 5 * 10 * 64 * 4 * 2);  // kept on request
    backward(loss);
    CHECK(memory_use().live <= before + gradients + 64);  // and the loss itself
  }

  TEST_CASE("a graph that is dropped without a walk frees everything") {
    SmallNetwork const network;
    Index const before = memory_use().live;
    {
      Tensor const loss = network.loss();
      CHECK(memory_use().live > before);
    }
    CHECK(memory_use().live == before);
  }

  TEST_CASE("backward lets go of every part as soon as it is behind it") {
    Tensor const x = Tensor::zeros({1 << 14}, DType::float64).set_requires_grad(), y = sum(deep_sine(x));
    Index const before = memory_use().live;
    CHECK(test::peak_of([&] { y.backward(); }) < 4 * (8 << 14));
    CHECK(memory_use().live <= before - 48 * (8 << 14));
  }

  TEST_CASE("grad keeps a graph, and lets go of one that nobody else holds") {
    auto const freed = [](bool held) {
      Tensor const x = Tensor::zeros({1 << 14}, DType::float64).set_requires_grad();
      std::vector<Tensor> outputs;
      outputs.push_back(sum(deep_sine(x)));
      Tensor const holder = held ? outputs[0] : Tensor();
      Index const before = memory_use().live;
      Tensor const u = grad(std::move(outputs), {x})[0];
      CHECK(u.shape() == x.shape());
      return before - memory_use().live;
    };
    CHECK(freed(true) < 0);  // the gradient
    CHECK(freed(false) > 45 * (8 << 14));
  }

  TEST_CASE("live, peak and reserved bytes") {
    reset_memory_peak();
    MemoryUse const start = memory_use();
    CHECK(start.peak == start.live);
    {
      Buffer const a(1 << 20);
      Buffer const b(1 << 20);
      CHECK(memory_use().live == start.live + (2 << 20));
    }
    MemoryUse const end = memory_use();
    CHECK(end.live == start.live);
    CHECK(end.peak == start.live + (2 << 20));
    CHECK(end.reserved >= end.live);
    reset_memory_peak();
    CHECK(memory_use().peak == start.live);
  }

  TEST_CASE("freed blocks are used again, also for sizes close by, and given back on demand") {
    std::byte const* where = nullptr;
    {
      Buffer const block(1'000'000);
      where = block.data();
    }
    Index const asked = memory_use().system_allocations;
    {
      Buffer const block(1'000'100);
      CHECK(block.data() == where);
    }
    CHECK(memory_use().system_allocations == asked);
    CHECK(memory_use().reserved > memory_use().live);
    release_idle_memory();
    CHECK(memory_use().reserved == memory_use().live);
    Buffer const block(1'000'000);
    CHECK(memory_use().system_allocations == asked + 1);
  }

  TEST_CASE("blocks begin on a cache line and hold what they should") {
    for (std::size_t const bytes : std::vector<std::size_t>{0, 1, 63, 64, 65, 1000, 4097, 100'000, 12'345'678}) {
      CAPTURE(bytes);
      Index const before = memory_use().live;
      Buffer const block(bytes);
      REQUIRE(block.data() != nullptr);
      CHECK(reinterpret_cast<std::uintptr_t>(block.data()) % 64 == 0);
      std::memset(block.data(), 7, bytes);
      Index const taken = memory_use().live - before;
      CHECK(taken >= static_cast<Index>(bytes));
      CHECK(static_cast<double>(taken) <= 1.25 * static_cast<double>(bytes) + 64);
    }
  }

  TEST_CASE("copies of a buffer count their owners") {
    Index const before = memory_use().live;
    Buffer a(100);
    CHECK(a.sole_owner());
    {
      Buffer const b = a;
      CHECK(b.data() == a.data());
      CHECK(!a.sole_owner());
    }
    CHECK(a.sole_owner());
    Buffer c = std::move(a);
    CHECK(a.data() == nullptr);  // NOLINT: what is left after a move
    CHECK(c.sole_owner());
    Buffer const& same = c;
    c = same;
    CHECK(c.sole_owner());
    c = Buffer();
    CHECK(c.data() == nullptr);
    CHECK(memory_use().live == before);
  }

  TEST_CASE("more than there is: an error that says how much was asked for") {
    CHECK_THROWS_WITH_AS(Buffer(std::size_t{1} << 60), doctest::Contains("out of memory: 1152921504606846976 bytes asked for"),
                         OutOfMemory);
    Buffer const still(10);
    CHECK(still.data() != nullptr);
  }

  TEST_CASE("no more than a limit, while there is one") {
    Index const live = memory_use().live;
    {
      MemoryLimit const limit(live + (1 << 20)), larger(live + (1 << 30));
      reset_memory_peak();
      CHECK_NOTHROW(Tensor::zeros({1 << 10}, DType::float32));
      try {
        Tensor::zeros({1 << 20}, DType::float32);
        FAIL("it was allocated");
      } catch (OutOfMemory const& error) {
        CHECK(error.needed == static_cast<double>(live + (1 << 22)));
        CHECK(error.available == static_cast<double>(live + (1 << 20)));
      }
      CHECK(memory_use().peak == live + (1 << 22));
      CHECK(memory_use().live == live);
    }
    CHECK_NOTHROW(Tensor::zeros({1 << 20}, DType::float32));
  }

  TEST_CASE(
      "a product with attention's Hessian holds neither [n, m, d] nor, as n grows, more than rows of [n, m], or of a sliding window") {
    auto const peak = [](Index length, Index sees = 0) {
      Index const heads = 2, width = 32;
      auto const drawn = [](Shape const& shape, char const* what) { return test::normal(shape, what, DType::float32); };
      Shape const shape{1, length, heads * width};
      AttentionForm form{.heads = heads, .visibility = {.causal = true, .lengths = {}, .offset = 0}};
      form.visibility.sees = sees;
      form.sum = additive_sum();
      auto const f = [&](Tensor const& query) {
        AttentionInputs in{query, drawn(shape, "key"), drawn(shape, "value")};
        in.weight = drawn({heads, width}, "weight");
        return sum(fused_attention(form, in) * drawn(shape, "context"));
      };
      Tensor const query = drawn(shape, "query"), v = drawn(shape, "v");
      return static_cast<double>(test::peak_of([&] { CHECK(hessian_vector_product(f, query, v).shape() == shape); }));
    };
    double const short_peak = peak(512), long_peak = peak(1024);
    CHECK(long_peak < 16e6);  // [n, m, d] of both heads: 268e6
    CHECK(long_peak < 1.6 * short_peak);
    CHECK(peak(1024, 32) - peak(512, 32) < 20.0 * 4 * 2 * 32 * 512);  // arrays of as many elements as the queries
    CHECK(peak(1024, 32) < 0.7 * long_peak);
  }

  TEST_CASE("second derivatives of an activation or a norm hold its gradient, not what its formula has between") {
    Shape const shape{1024, 512};
    double const array = 4.0 * 1024 * 512;
    Tensor const x = test::normal(shape, "x", DType::float32), v = test::normal(shape, "v", DType::float32);
    auto const peak = [&](auto const& f) {
      auto const total = [&](Tensor const& at) { return sum(f(at)); };
      return static_cast<double>(test::peak_of([&] { CHECK(hessian_vector_product(total, x, v).shape() == shape); }));
    };
    CHECK(peak([](Tensor const& at) { return gelu(at); }) < 7 * array);  // 16 where the formula's graph was recorded
    CHECK(peak([](Tensor const& at) { return silu(at); }) < 7 * array);
    Tensor const ones = Tensor::ones({512}, DType::float32);
    CHECK(peak([&](Tensor const& at) { return exp(layer_norm(at, ones, {})); }) < 9 * array);
  }

  TEST_CASE("second derivatives of a loss over a large vocabulary hold some rows of logits") {
    Index const rows = 2048, width = 16, words = 8192;
    auto const drawn = [](Shape const& shape, char const* what) { return test::normal(shape, what, DType::float32); };
    Tensor const x = drawn({rows, width}, "x"), v = drawn({rows, width}, "v"), weight = drawn({words, width}, "weight");
    auto const loss = [&](Tensor const& at) { return linear_cross_entropy(at, weight, {}, Tensor::arange(rows, DType::int64)); };
    Index const peak = test::peak_of([&] { CHECK(hessian_vector_product(loss, x, v).shape() == x.shape()); });
    CHECK(2 * peak < 3 * (4 * rows * words));
  }

  TEST_CASE("threads share the pool") {
    Index const before = memory_use().live;
    std::vector<std::thread> workers;
    std::vector<int> intact(4, 0);
    for (std::size_t k = 0; k < 4; ++k) {
      workers.emplace_back([&, k] {
        for (std::size_t round = 0; round < 2000; ++round) {
          Buffer const mine(100 + round % 7 * 100);
          *mine.data() = static_cast<std::byte>(k);
          Buffer const alias = mine;
          intact[k] += *alias.data() == static_cast<std::byte>(k);
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    CHECK(intact == std::vector<int>(4, 2000));
    CHECK(memory_use().live == before);
  }
}
