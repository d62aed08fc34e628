#include "autograd/blas/products.hpp"
#include "tests/autograd/tensors.hpp"

using namespace heed;
using test::distance, test::LogitsWithin, test::same_bits;

namespace {

/// A layer's input, a head, and targets: 4 × 150 rows, which are two blocks of 208 and one of 184 where blocks are the smallest.
struct Head {
  explicit Head(DType dtype = DType::float64, bool biased = true, bool ignores = true) {
    auto const drawn = [&](char const* name, Shape const& shape) {
      return test::normal(shape, name, DType::float32).to(dtype).set_requires_grad();
    };
    x = drawn("x", {4, 150, 24});
    weight = drawn("weight", {classes, 24});
    if (biased) bias = drawn("bias", {classes});
    std::vector<Index> values;
    for (Index i = 0; i < 600; ++i) values.push_back(ignores && i % 11 == 3 ? -1 : i * 29 % classes);
    targets = Tensor::of(values, {4, 150});
  }

  Tensor whole(double smoothing = 0) const { return cross_entropy(linear(x, weight, bias), targets, smoothing); }
  Tensor fused(double smoothing = 0) const { return linear_cross_entropy(x, weight, bias, targets, smoothing); }
  Tensor in_blocks(double smoothing = 0) const {
    LogitsWithin const nothing(0);
    return fused(smoothing);
  }
  std::vector<Tensor> inputs() const { return bias.defined() ? std::vector{x, weight, bias} : std::vector{x, weight}; }
  std::vector<Tensor> differentiated(Tensor const& loss) const {
    std::vector<Tensor> all = grad({loss}, inputs());
    all.push_back(loss.detach());
    return all;
  }

  static constexpr Index classes = 67;
  Tensor x, weight, bias, targets;
};

bool all_zero(Tensor const& x) {
  return std::ranges::all_of(x.to_vector(), [](double value) { return value == 0; });
}

}  // namespace

TEST_SUITE("linear_cross_entropy") {
  TEST_CASE("blocks give what whole logits give") {
    for (bool const biased : {true, false})
      for (bool const ignores : {true, false})
        for (double const smoothing : {0.0, 0.1}) {
          INFO("biased ", biased, ", ignores ", ignores, ", smoothing ", smoothing);
          Head const exact(DType::float64, biased, ignores), single(DType::float32, biased, ignores);
          auto const expected = exact.differentiated(exact.whole(smoothing)), found = exact.differentiated(exact.in_blocks(smoothing));
          auto const rounded = single.differentiated(single.whole(smoothing)), ours = single.differentiated(single.in_blocks(smoothing));
          REQUIRE(found.size() == expected.size());
          for (std::size_t i = 0; i < found.size(); ++i) {
            CAPTURE(i);
            CHECK(distance(found[i], expected[i]) < 1e-12);
            CHECK(ours[i].dtype() == DType::float32);
            double const min_distance = std::numeric_limits<float>::epsilon() / 2;  // the whole loss may happen to be exact
            CHECK(distance(ours[i], expected[i]) <= 2 * std::max(distance(rounded[i], expected[i]), min_distance));
          }
        }
  }

  TEST_CASE("small logits are whole, with the bits of the two operations") {
    Head const head(DType::float32);
    Tensor const loss = head.fused(0.1);
    CHECK(critical_path(loss) == 2);
    CHECK(same_bits(head.differentiated(loss), head.differentiated(head.whole(0.1))));
    CHECK(critical_path(head.in_blocks(0.1)) == 1);
    auto const operations_within = [&](Index bytes) {
      LogitsWithin const limit(bytes);
      return critical_path(head.fused());
    };
    CHECK(operations_within(600 * Head::classes * 4) == 2);
    CHECK(operations_within(600 * Head::classes * 4 - 1) == 1);
  }

  TEST_CASE("how many rows of logits are held at once") {
    CHECK(logits_bytes() == 16 << 20);
    CHECK(logits_at_once(4096, 1024, DType::float32) == 4096);  // 16 MiB
    CHECK(logits_at_once(4097, 1024, DType::float32) == 2064);  // two blocks
    CHECK(logits_at_once(4096, 1024, DType::float64) == 2048);
    CHECK(logits_at_once(1000, 1 << 20, DType::float32) == 256);  // with fewer, products would be slow
    CHECK(logits_at_once(40, 1 << 20, DType::float32) == 40);
    CHECK(logits_at_once(0, 1 << 20, DType::float32) == 0);
    for (Index rows = 1; rows < 1500; ++rows) {
      LogitsWithin const limit(300 * 4 * 10);
      auto const at_once = logits_at_once(rows, 10, DType::float32);
      CHECK(at_once <= 300);
      CHECK((at_once == rows || at_once % 16 == 0));
    }
  }

  TEST_CASE("the divisor, and what comes before it in the graph") {
    Head const head;
    LogitsWithin const nothing(0);
    auto const over = [&](double count) { return linear_cross_entropy(head.x, head.weight, head.bias, head.targets, 0.1, -1, count); };
    auto const expected = head.differentiated(cross_entropy(linear(head.x, head.weight, head.bias), head.targets, 0.1, -1, 1000.0));
    auto const found = head.differentiated(over(1000)), scaled = head.differentiated(scale(over(3000), 3));
    for (std::size_t i = 0; i < expected.size(); ++i)
      for (Tensor const& each : {found[i], scaled[i]}) CHECK(distance(each, expected[i]) < 1e-12);
    CHECK(over(0).item() == 0);
    for (Tensor const& gradient : grad({over(0)}, head.inputs())) CHECK(all_zero(gradient));
  }

  TEST_CASE("a graph that is kept gives its gradients again") {
    Head const head;
    Tensor const loss = head.in_blocks();
    auto const once = grad({loss}, head.inputs());
    CHECK(same_bits(grad({loss}, head.inputs()), once));
    backward(loss, {}, true);
    CHECK(same_bits(std::vector{head.x.grad(), head.weight.grad(), head.bias.grad()}, once));
    backward(loss, {}, true);
    backward(loss);
    for (std::size_t i = 0; i < 3; ++i) CHECK(distance(head.inputs()[i].grad(), scale(once[i], 3)) < 1e-15);
  }

  TEST_CASE("what is ignored has no part") {
    Head const head;
    LogitsWithin const nothing(0);
    SUBCASE("all rows") {
      Tensor const none = Tensor::full({4, 150}, -1, DType::int64);
      Tensor const loss = linear_cross_entropy(head.x, head.weight, head.bias, none, 0.1);
      CHECK(loss.item() == 0);
      for (Tensor const& gradient : grad({loss}, head.inputs())) CHECK(all_zero(gradient));
    }
    SUBCASE("a row of NaN, unless it counts") {
      Tensor x = head.x.clone();
      x.mutable_data<double>()[3 * 24] = std::nan("");  // row 3 is ignored
      x.set_requires_grad();
      auto const loss = [&](Tensor const& targets) { return linear_cross_entropy(x, head.weight, head.bias, targets); };
      CHECK(loss(head.targets).item() == head.in_blocks().item());
      CHECK(same_bits(grad(loss(head.targets), head.weight), grad(head.in_blocks(), head.weight)));
      Tensor const all = Tensor::full({4, 150}, 1, DType::int64);
      CHECK(std::isnan(loss(all).item()));
      CHECK(std::isnan(grad(loss(all), x).at(3 * 24)));
    }
  }

  TEST_CASE("derivatives of both orders, of a weight that is table and head") {
    std::vector<Index> tokens;
    for (Index i = 0; i < 300; ++i) tokens.push_back(i % 5);
    Tensor const read = Tensor::of(tokens, {2, 150});
    std::rotate(tokens.begin(), tokens.begin() + 3, tokens.end());
    tokens[8] = -1;
    Tensor const wanted = Tensor::of(tokens, {2, 150});
    auto const tied = [&](bool blocks) {
      return [&read, &wanted, blocks](std::vector<Tensor> const& in) {
        LogitsWithin const limit(blocks ? 0 : 16 << 20);
        return linear_cross_entropy(tanh(embedding(in[0], read)), in[0], in[1], wanted, 0.1);
      };
    };
    std::vector<Tensor> const inputs{test::normal({5, 3}, "weight"), test::normal({5}, "bias")};
    test::check_ok(gradcheck(tied(true), inputs));
    test::check_ok(gradgradcheck(tied(true), inputs));
    auto const gradient = [&](bool blocks) {
      Tensor const weight = inputs[0].clone().set_requires_grad();
      tied(blocks)({weight, inputs[1]}).backward();
      return weight.grad();
    };
    CHECK(distance(gradient(true), gradient(false)) < 1e-12);
  }

  TEST_CASE("the bits do not depend on the run, on threads, or on whether there will be gradients") {
    Head head(DType::float32);
    head.x = test::normal_leaf({333, 130}, "x", DType::float32);
    head.weight = test::normal_leaf({1003, 130}, "weight", DType::float32);
    head.bias = test::normal_leaf({1003}, "bias", DType::float32);
    std::vector<Index> values;
    for (Index i = 0; i < 333; ++i) values.push_back(i * 31 % 1003);
    head.targets = Tensor::of(values, {333});
    LogitsWithin const nothing(0);
    auto const made = [&] { return head.differentiated(head.fused(0.1)); };
    test::check_threads({1, 1, 2}, made);
    Tensor const loss = made().back();
    NoGrad const quiet;
    CHECK(same_bits(head.fused(0.1), loss));
  }

  TEST_CASE("no more than a block of logits is there beside the gradients") {
    Index const rows = 1024, classes = 8192, in = 16;  // 32 MiB of logits
    Tensor x = test::normal_leaf({rows, in}, "x", DType::float32), weight = test::normal_leaf({classes, in}, "weight", DType::float32);
    Tensor const targets = Tensor::full({rows}, 3, DType::int64);
    LogitsWithin const limit(8 << 20);
    Index const gradients = (rows + classes) * in * 4, small = 100'000;  // pools round up
    auto const step = [&] { linear_cross_entropy(x, weight, {}, targets).backward(); };
    CHECK(test::peak_of(step) <= (8 << 20) + gradients * 5 / 4 + small);
    x.clear_grad(), weight.clear_grad();
    Index const before = memory_use().live;
    Tensor const loss = linear_cross_entropy(x, weight, {}, targets);
    CHECK(memory_use().live - before <= gradients * 5 / 4 + small);  // the block is gone
    NoGrad const quiet;
    CHECK(test::peak_of([&] { linear_cross_entropy(x, weight, {}, targets); }) <= (8 << 20) + small);
  }

  TEST_CASE("anomaly mode names it and its part") {
    Tensor const x = Tensor::full({2, 3}, 1e300, DType::float64).set_requires_grad();
    LogitsWithin const nothing(0);
    Anomaly const anomaly;
    ModelPart const here("head");
    CHECK_THROWS_WITH_AS(linear_cross_entropy(x, scale(Tensor::ones({4, 3}, DType::float64), 1e300), {}, Tensor::zeros({2}, DType::int64)),
                         doctest::Contains("linear_cross_entropy in head: NaN at element 0 of []"), NonFinite);
  }

  TEST_CASE("its products are those that were chosen, and are counted") {
    Head const head(DType::float32, false, false);
    auto const counted = product_flops();
    auto const exact = head.differentiated(head.in_blocks());
    CHECK(product_flops() - counted == 3 * 2 * 600 * 24 * Head::classes);
    WithProducts const chosen({.bfloat16 = true});
    auto const rounded = head.differentiated(head.in_blocks());
    for (std::size_t i = 0; i < exact.size(); ++i) {
      CHECK(distance(rounded[i], exact[i]) > 1e-6);
      CHECK(distance(rounded[i], exact[i]) < 0.02);
    }
  }
}
