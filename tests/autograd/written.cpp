// An array that is written to between the forward and the backward pass.

#include "autograd/graph_memory.hpp"
#include "autograd/xtensor.hpp"
#include "tests/autograd/tensors.hpp"
#include "tests/refusal.hpp"

namespace heed {

using test::refusal;

namespace {

Tensor drawn_leaf(Shape const& shape, DType dtype = DType::float64) { return test::normal_leaf(shape, "x", dtype); }

void write(Tensor& x) { copy_elements(10 * x.detach(), x); }

}  // namespace

TEST_SUITE("written") {
  TEST_CASE("an input that the derivative needs") {
    Tensor x = drawn_leaf({2, 3});
    {
      ModelPart const part("blocks.0.mlp");
      Tensor const y = sum(x * x);
      as_xtensor<double>(x) *= 10;
      CHECK(refusal([&] { grad(y, x); }).starts_with("backward: input 1 (of 2) of multiply"));
      CHECK(refusal([&] { y.backward(); }) ==
            "backward: input 1 (of 2) of multiply in blocks.0.mlp, float64 [2, 3], was written to after multiply had used it, and its "
            "derivative needs what was there; write to a clone() instead");
    }
    Tensor w = drawn_leaf({3, 4});
    Tensor const product = sum(matmul(x, w));
    write(w);
    CHECK(refusal([&] { product.backward(); }).starts_with("backward: input 2 (of 2) of matmul"));
  }

  TEST_CASE("a result that the derivative needs, an array that is shared, and integers") {
    Tensor y = exp(drawn_leaf({4, 3}));
    Tensor const total = sum(y);
    write(y);
    CHECK(refusal([&] { total.backward(); }).starts_with("backward: the result of exp, float64 [4, 3], was written to"));

    Tensor point = drawn_leaf({4, 3});
    Tensor const squares = sum(point * point);
    Tensor row = point.rows(1, 1);
    write(row);
    CHECK(refusal([&] { squares.backward(); }).starts_with("backward: input 1"));

    Tensor tokens = Tensor::zeros({2}, DType::int64);
    Tensor const rows = sum(embedding(drawn_leaf({4, 3}), tokens));
    tokens.mutable_data<std::int64_t>()[0] = 2;
    CHECK(refusal([&] { rows.backward(); }).starts_with("backward: input 2 (of 2) of embedding, int64 [2]"));
  }

  TEST_CASE("operations with kernels of their own, and those whose result is made again") {
    for (Index const bytes : {Index{0}, recompute_bytes()}) {
      test::With<recompute_bytes, set_recompute_bytes> const from(bytes);
      Tensor x = drawn_leaf({8, 16}, DType::float32);
      Tensor const weight = Tensor::ones({16}, DType::float32);
      for (auto const& f : std::vector<std::function<Tensor(Tensor const&)>>{
               [&](Tensor const& p) { return layer_norm(p, weight, {}); }, [](Tensor const& p) { return gelu(p) * p; },
               [](Tensor const& p) { return logsumexp(p, {1}); }, [](Tensor const& p) { return matmul(gelu(p), transpose(p, 0, 1)); },
               [](Tensor const& p) { return checkpoint([](std::vector<Tensor> const& in) { return in[0] * in[0]; }, {p}); }}) {
        Tensor const y = sum(f(x));
        write(x);
        CHECK(refusal([&] { y.backward(); }).find("was written to after") != std::string::npos);
      }
    }
  }

  TEST_CASE("what stays legal") {
    SUBCASE("inputs that no derivative needs") {
      Tensor x = drawn_leaf({3});
      Tensor const y = sum(x + x);
      write(x);
      CHECK(refusal([&] { y.backward(); }).empty());
      CHECK(x.grad().to_vector() == std::vector<double>{2, 2, 2});
    }
    SUBCASE("writes before the operation and after the walk") {
      Tensor x = drawn_leaf({3});
      write(x);
      Tensor const y = sum(x * x);
      y.backward();
      write(x);
      sum(x * x).backward();
      CHECK(x.grad().defined());
    }
    SUBCASE("an optimizer's steps between two passes, and gradients that are summed over passes") {
      Tensor x = drawn_leaf({3, 3});
      for (int step = 0; step < 3; ++step) {
        sum(matmul(x, x)).backward();
        sum(x * x).backward();
        copy_elements(x.detach() - 0.1 * x.grad(), x);
        x.clear_grad();
      }
      CHECK(x.at(0) == x.at(0));
    }
    SUBCASE("a clone") {
      Tensor const x = drawn_leaf({3}), y = sum(x * x);
      Tensor copy = x.clone();
      write(copy);
      CHECK(refusal([&] { y.backward(); }).empty());
    }
  }
}

}  // namespace heed
