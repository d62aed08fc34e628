#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "autograd/graph.hpp"
#include "autograd/graph_memory.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/index.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/random.hpp"

using namespace heed;

namespace {

/// A small network: a table that is looked up in and multiplied by at the end, layers, one of them run again for its gradient, a frozen
/// weight, one that an operation has no gradient for, and one that is never used.
struct Network {
  std::vector<std::pair<std::string, Tensor>> leaves;

  Network() {
    for (std::string const name : {"table", "first", "scale", "again", "frozen", "no_gradient", "unused"}) {
      Tensor x = Tensor::normal(name == "table" ? Shape{5, 4} : Shape{4, 4}, Stream(1, name), DType::float32);
      leaves.emplace_back(name, x.set_requires_grad());
    }
    leaf("frozen").set_frozen();
  }

  Tensor& leaf(std::string const& name) {
    for (auto& [known, x] : leaves)
      if (known == name) return x;
    throw Error("no leaf " + name);
  }
  std::string name_of(Tensor const& x) const {
    for (auto const& [name, each] : leaves)
      if (each.node() == x.node()) return name;
    return "?";
  }

  Tensor loss(std::vector<std::int64_t> const& tokens) {
    Tensor h = embedding(leaf("table"), Tensor::of(tokens, {static_cast<std::int64_t>(tokens.size())}));
    Tensor const older = tanh(matmul(h, leaf("first"))), newer = matmul(h, leaf("scale") * leaf("scale"));
    h = older + newer;
    h = checkpoint([&](std::vector<Tensor> const& in) { return tanh(matmul(in[0], leaf("again"))); }, {h});
    h = matmul(h, leaf("frozen"));
    h = record("without", {h, leaf("no_gradient")}, h.clone(), keep_nothing, [](BackwardContext const& s) {
      return std::vector<Tensor>{s.dy, {}};
    });
    return sum(matmul(h, leaf("table"), false, true));
  }
};

std::vector<std::int64_t> const first_tokens{0, 3, 1, 3}, second_tokens{4, 2, 2};

}  // namespace

TEST_SUITE("gradient_ready") {
  TEST_CASE("the same gradients bit for bit, over two walks") {
    Network plain, watched;
    plain.loss(first_tokens).backward();
    plain.loss(second_tokens).backward();
    for (auto const* tokens : {&first_tokens, &second_tokens}) {
      Tensor const loss = watched.loss(*tokens);
      GradientReady const ready([](Tensor const&) {});
      loss.backward();
    }
    for (std::size_t i = 0; i < plain.leaves.size(); ++i) {
      CAPTURE(plain.leaves[i].first);
      Tensor const expected = plain.leaves[i].second.grad(), found = watched.leaves[i].second.grad();
      REQUIRE(found.defined() == expected.defined());
      if (expected.defined()) CHECK(found.to_vector() == expected.to_vector());
    }
  }

  TEST_CASE("each leaf that the output was made from is ready once, with its whole gradient, as early as it can be") {
    Network network;
    network.loss(first_tokens).backward();
    std::vector<std::vector<double>> whole;
    for (auto& [name, x] : network.leaves) {
      whole.push_back(x.grad().defined() ? x.grad().to_vector() : std::vector<double>{});
      x.clear_grad();
    }
    Tensor const loss = network.loss(first_tokens);
    std::vector<std::string> order;
    GradientReady const ready([&](Tensor const& leaf) {
      order.push_back(network.name_of(leaf));
      for (std::size_t i = 0; i < whole.size(); ++i) {
        if (network.leaves[i].first != order.back()) continue;
        CHECK((leaf.grad().defined() ? leaf.grad().to_vector() : std::vector<double>{}) == whole[i]);
      }
    });
    loss.backward();
    // The table is used last and first. Of the sum's two branches, the newer is walked first.
    std::vector<std::string> const expected{"no_gradient", "again", "scale", "first", "table"};
    CHECK(order == expected);
  }

  TEST_CASE("a leaf behind an operation without a gradient is ready at the end; an output that is a leaf is") {
    Tensor x = Tensor::ones({2}, DType::float64), y = Tensor::ones({2}, DType::float64);
    x.set_requires_grad(), y.set_requires_grad();
    Tensor const hidden = record("without", {tanh(x)}, Tensor::ones({2}, DType::float64), keep_nothing,
                                 [](BackwardContext const&) { return std::vector<Tensor>(1); });
    Tensor const loss = sum(hidden * y);
    std::vector<Tensor> order;
    GradientReady const ready([&](Tensor const& leaf) { order.push_back(leaf); });
    loss.backward();
    REQUIRE(order.size() == 2);
    CHECK(order[0].node() == y.node());
    CHECK(order[1].node() == x.node());
    CHECK(!x.grad().defined());

    Tensor alone = Tensor::ones({}, DType::float64);
    alone.set_requires_grad();
    alone.backward();
    REQUIRE(order.size() == 3);
    CHECK(order[2].grad().item() == 1);
  }

  TEST_CASE("grad() and walks without it call nothing") {
    Tensor x = Tensor::ones({2}, DType::float64);
    x.set_requires_grad();
    int calls = 0;
    {
      GradientReady const ready([&](Tensor const&) { ++calls; });
      grad(sum(x * x), x);
    }
    sum(x * x).backward();
    CHECK(calls == 0);
  }
}
