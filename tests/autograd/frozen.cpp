#include "autograd/graph_memory.hpp"
#include "tests/autograd/tensors.hpp"

using namespace heed;

namespace {

Tensor leaf(char const* name) { return test::normal_leaf({3, 3}, name); }

}  // namespace

TEST_SUITE("frozen") {
  TEST_CASE("a frozen leaf is a constant, by whichever handle an operation is given it") {
    Tensor w = leaf("w"), x = leaf("x");
    Tensor const handle = w;
    w.set_frozen();
    CHECK(!handle.requires_grad());
    CHECK(handle.frozen());
    CHECK(!matmul(handle, handle).requires_grad());
    sum(matmul(tanh(handle), x) * handle).backward();
    CHECK(x.grad().defined());
    CHECK(!handle.grad().defined());
  }

  TEST_CASE("what is thawed has its gradient again; the gradient of before is forgotten") {
    Tensor w = leaf("w"), x = leaf("x");
    auto const loss = [&] { return sum(tanh(matmul(w, x))); };
    loss().backward();
    auto const gradient = w.grad().to_vector(), of_x = x.grad().to_vector();
    w.set_frozen();
    CHECK(!w.grad().defined());
    x.clear_grad();
    loss().backward();
    CHECK(x.grad().to_vector() == of_x);
    w.set_frozen(false);
    CHECK(w.requires_grad());
    loss().backward();
    CHECK(w.grad().to_vector() == gradient);
  }

  TEST_CASE("recomputation sees no frozen leaf either, and gradients by one are zeros") {
    Tensor w = leaf("w"), v = leaf("v"), x = leaf("x");
    auto const f = [&](std::vector<Tensor> const& in) { return tanh(matmul(matmul(in[0], w), v)); };
    auto const gradients = [&](bool again) { return grad({sum(again ? checkpoint(f, {x}) : f({x}))}, {x, v, w}); };
    auto const whole = gradients(false);
    w.set_frozen();
    for (bool const again : {false, true}) {
      auto const found = gradients(again);
      CHECK(found[0].to_vector() == whole[0].to_vector());
      CHECK(found[1].to_vector() == whole[1].to_vector());
      CHECK(found[2].to_vector() == std::vector<double>(9, 0));
    }
    x.set_frozen(), v.set_frozen();
    CHECK(!checkpoint(f, {x}).requires_grad());
  }

  TEST_CASE("only leaves can be frozen") {
    Tensor constant = Tensor::ones({2}, DType::float64), made = tanh(leaf("x"));
    CHECK_THROWS_WITH_AS(constant.set_frozen(), "set_frozen: the tensor is no leaf of the graph", Error);
    CHECK_THROWS_WITH_AS(made.set_frozen(), "set_frozen: the tensor is no leaf of the graph", Error);
    CHECK(!constant.frozen());
  }
}
