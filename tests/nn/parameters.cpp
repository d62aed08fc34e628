#include "nn/parameters.hpp"

#include "tests/nn/models.hpp"

using namespace heed;
using doctest::Approx;

namespace {

double spread(Tensor const& x) { return std::sqrt(mean(x * x).item()); }

InitSettings init(std::string const& scheme, double std = 0.02) {
  InitSettings settings = test::wide(std);
  settings.scheme = scheme;
  return settings;
}

}  // namespace

TEST_SUITE("parameters") {
  TEST_CASE("parameters are leaves with names, in the order of creation") {
    Parameters parameters(1, DType::float32);
    Scope const root(parameters);
    Scope const mlp = root.at("blocks.0").at("mlp");
    CHECK(root.path() == "");
    CHECK(mlp.path() == "blocks.0.mlp");
    CHECK(mlp.dtype() == DType::float32);
    Tensor const weight = mlp.parameter("up.weight", {6, 4}, Initial::weight(), WeightDecay::on);
    Tensor const top = root.parameter("scale", {}, Initial::constant(2), WeightDecay::on);
    REQUIRE(parameters.all().size() == 2);
    CHECK(parameters.all()[0].first == "blocks.0.mlp.up.weight");
    CHECK(parameters.all()[1].first == "scale");
    CHECK(parameters.elements() == 25);
    CHECK(top.item() == 2);
    CHECK(weight.requires_grad());
    CHECK(weight.dtype() == DType::float32);
    REQUIRE(parameters.find("scale") != nullptr);
    CHECK(parameters.find("scale")->shares_array_with(top));
    CHECK(parameters.find("shift") == nullptr);
    CHECK_THROWS_WITH_AS(root.parameter("scale", {}, Initial::constant(1), WeightDecay::on), "parameters: the name 'scale' is taken",
                         Error);
  }

  TEST_CASE("parameters that are given are those tensors, not copies") {
    Tensor const scale = Tensor::ones({2}, DType::float64);
    Parameters parameters = Parameters::given({{"norm.scale", scale}, {"other", scale}}, DType::float64);
    Scope const norm = Scope(parameters).at("norm");
    CHECK(norm.parameter("scale", {2}, Initial::constant(5), WeightDecay::on).shares_array_with(scale));
    CHECK(parameters.all().size() == 1);
    CHECK_THROWS_WITH_AS(norm.parameter("shift", {2}, Initial::constant(0), WeightDecay::on), "parameters: 'norm.shift' [2] was not given",
                         Error);
    CHECK_THROWS_WITH_AS(Scope(parameters).parameter("other", {3}, Initial::constant(0), WeightDecay::on),
                         "parameters: 'other' [3] was not given", Error);
  }

  TEST_CASE("gradients arrive in the parameters, and are cleared together") {
    Parameters parameters(1, DType::float64);
    Tensor const a = parameters.add("a", {3}, Initial::constant(1), WeightDecay::on);
    Tensor const b = parameters.add("b", {3}, Initial::constant(2), WeightDecay::on);
    backward(sum(a * b));
    CHECK(parameters.find("a")->grad().to_vector() == std::vector<double>(3, 2));
    CHECK(parameters.find("b")->grad().to_vector() == std::vector<double>(3, 1));
    parameters.clear_gradients();
    CHECK(!a.grad().defined());
    CHECK(!b.grad().defined());
  }

  TEST_CASE("initial values depend on seed and name alone, in either precision") {
    auto const drawn = [](std::uint64_t seed, std::string const& name, DType dtype, bool others = false) {
      Parameters parameters(seed, dtype);
      if (others) parameters.add("another", {100}, Initial::normal(1), WeightDecay::on);
      return parameters.add(name, {50, 3}, Initial::weight(), WeightDecay::on).to_vector();
    };
    auto const values = drawn(1, "a", DType::float64);
    CHECK(drawn(1, "a", DType::float64, true) == values);
    CHECK(drawn(2, "a", DType::float64) != values);
    CHECK(drawn(1, "b", DType::float64) != values);
    auto const narrow = drawn(1, "a", DType::float32);
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(narrow[i] == Approx(values[i]).epsilon(1e-6));
  }

  TEST_CASE("the schemes: their spread, their bounds, and what is not theirs to say") {
    auto const drawn = [&](InitSettings const& settings, Initial const& initial) {
      return Parameters(1, DType::float64, settings).add("w", {200, 300}, initial, WeightDecay::on);
    };
    CHECK(spread(drawn(init("normal"), Initial::weight())) == Approx(0.02).epsilon(0.02));
    CHECK(spread(drawn(init("normal", 0.5), Initial::weight(0.1))) == Approx(0.05).epsilon(0.02));
    Tensor const uniform = drawn(init("uniform", 0.3), Initial::weight(2));
    CHECK(max(abs(uniform)).item() <= 0.6);
    CHECK(max(abs(uniform)).item() > 0.599);
    CHECK(spread(uniform) == Approx(0.6 / std::sqrt(3)).epsilon(0.02));
    Tensor const xavier = drawn(init("xavier"), Initial::weight());
    double const bound = std::sqrt(6.0 / 500);
    CHECK(max(abs(xavier)).item() <= bound);
    CHECK(max(abs(xavier)).item() > 0.999 * bound);
    InitSettings alone = init("xavier");
    alone.small_branches = false;
    CHECK(drawn(alone, Initial::weight(0.25)).to_vector() == xavier.to_vector());
    CHECK(max(abs(drawn(init("xavier"), Initial::weight(0.25)))).item() <= bound / 4);
    CHECK(max(abs(drawn(alone, Initial::weight(0.25, 0.5)))).item() == Approx(max(abs(xavier)).item() / 2));  // one factor holds always
    for (std::string const scheme : {"normal", "xavier", "uniform"}) {
      CHECK(spread(drawn(init(scheme), Initial::normal(0.7))) == Approx(0.7).epsilon(0.02));
      CHECK(max(abs(drawn(init(scheme), Initial::constant(0)))).item() == 0);
    }
  }

  TEST_CASE("assign: values of either precision, in any order; the leaves stay the same leaves") {
    Parameters parameters(1, DType::float32);
    Tensor const a = parameters.add("a", {2}, Initial::constant(0), WeightDecay::on);
    Tensor const b = parameters.add("b", {1, 2}, Initial::constant(0), WeightDecay::on);
    parameters.assign({{"b", Tensor::of(std::vector{3.0, 4.0}, {1, 2})}, {"a", Tensor::of(std::vector{1.0, 2.0}, {2}, DType::float32)}});
    CHECK(a.to_vector() == std::vector<double>{1, 2});
    CHECK(b.to_vector() == std::vector<double>{3, 4});
    CHECK(a.dtype() == DType::float32);
    CHECK(parameters.find("a")->shares_array_with(a));
  }

  TEST_CASE("assign names every missing, left-over and misshapen tensor, and then changes nothing") {
    Parameters parameters(1, DType::float32);
    Tensor const a = parameters.add("a", {2}, Initial::constant(7), WeightDecay::on);
    parameters.add("b", {3}, Initial::constant(0), WeightDecay::on);
    parameters.add("c", {}, Initial::constant(0), WeightDecay::on);
    Tensor const ones = Tensor::ones({2}, DType::float32);
    CHECK_THROWS_WITH_AS(parameters.assign({{"a", ones}, {"b", ones}, {"d", ones}}),
                         "'b' is [2], the model's is [3]; 'c' [] is missing; 'd' [2] is not the model's", Error);
    CHECK(a.to_vector() == std::vector<double>{7, 7});
  }
}
