#include <pthread.h>

#include "autograd/ops/recurrence.hpp"
#include "tests/autograd/tensors.hpp"

using namespace heed;
using test::leaf, test::normal_leaf, test::scalar_leaf;

namespace {

Tensor long_chain(Tensor const& x, int length) {
  Tensor y = x;
  for (int i = 0; i < length; ++i) y = y + 1;
  return y;
}

/// Runs `action` on a thread whose stack holds so many bytes.
void on_small_stack(std::size_t bytes, std::function<void()> const& action) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
  pthread_t thread;
  auto const run = [](void* argument) -> void* {
    (*static_cast<std::function<void()> const*>(argument))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&action)) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace

TEST_SUITE("long_graphs") {
  TEST_CASE("a chain of 200,000 operations: forward, backward, and freed, on a stack of 256 KB") {
    double slope = 0, value = 0, unwalked = 0;
    on_small_stack(256 << 10, [&] {
      Tensor const x = scalar_leaf(1), y = long_chain(x, 200'000);
      value = y.item();
      y.backward();
      slope = x.grad().item();
      unwalked = long_chain(x, 200'000).item();  // freed without a walk
      Tensor const kept = long_chain(x, 200'000);
      backward(kept, {}, true);
      slope += grad(kept, x).item();
    });
    CHECK(value == 200'001);
    CHECK(unwalked == 200'001);
    CHECK(slope == 2);  // 1 by backward, 1 by grad
  }

  TEST_CASE("a chain of 20,000 operations differentiated twice, on a stack of 256 KB") {
    double first = 0, second = 0;
    on_small_stack(256 << 10, [&] {
      Tensor const x = scalar_leaf(1);
      Tensor y = x;
      for (int i = 0; i < 20'000; ++i) y = y * Tensor::scalar(1, DType::float64) + 0.0;
      Tensor const slope = grad(y * y, x, true);
      first = slope.item();
      second = grad(slope, x).item();
    });
    CHECK(first == 2);
    CHECK(second == 2);
  }

  TEST_CASE("a wide graph: 100,000 uses of one tensor") {
    Tensor const x = scalar_leaf(2);
    std::vector<Tensor> parts;
    for (int i = 0; i < 100'000; ++i) parts.push_back(reshape(x, {1}));
    backward(sum(concatenate(parts, 0)));
    CHECK(x.grad().item() == 100'000);
  }

  TEST_CASE("critical_path: operations on the longest path") {
    Tensor const x = leaf({1, 2});
    CHECK(critical_path(Tensor::scalar(1, DType::float64)) == 0);
    CHECK(critical_path(x) == 0);
    CHECK(critical_path(exp(x)) == 1);
    CHECK(critical_path(exp(sin(x)) + x) == 3);
    CHECK(critical_path(long_chain(x, 50'000)) == 50'000);
    Tensor recurrent = x, parallel = x;
    std::vector<Tensor> together;
    for (int t = 0; t < 10; ++t) recurrent = tanh(recurrent), together.push_back(tanh(x));
    CHECK(critical_path(recurrent) == 10);
    CHECK(critical_path(concatenate(together, 0)) == 2);
    Tensor const a = normal_leaf({6, 2, 4}, "a"), weight = normal_leaf({4, 4}, "weight"), start = normal_leaf({2, 4}, "start");
    CHECK(critical_path(scan(CellForm::tanh, {}, exp(a), weight, Tensor(), {start})) == 7);  // of six time steps
  }
}
