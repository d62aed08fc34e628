#include "nn/adapters.hpp"

#include "autograd/ops/product.hpp"
#include "autograd/ops/reduce.hpp"
#include "nn/optimizer.hpp"
#include "tests/nn/choice.hpp"
#include "tests/nn/models.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("adapters") {
  using namespace heed;

  namespace {

  AdapterSettings settings(Index rank, std::vector<std::string> on) {
    AdapterSettings made;
    made.rank = rank;
    made.scale = 6;
    made.on = std::move(on);
    return made;
  }

  Parameters model(DType dtype) {
    Parameters parameters(3, dtype);
    parameters.add("token_embedding.weight", {6, 5}, Initial::normal(1), WeightDecay::on);
    parameters.add("blocks.0.attention.query.weight", {4, 5}, Initial::normal(1), WeightDecay::on);
    parameters.add("blocks.0.attention.value.weight", {7, 5}, Initial::normal(1), WeightDecay::on);
    parameters.add("blocks.0.attention.value.bias", {7}, Initial::normal(1), WeightDecay::off);
    parameters.add("heads.classification.weight", {2, 7}, Initial::normal(1), WeightDecay::on);
    return parameters;
  }

  /// A function of the model's weights.
  Tensor loss(Tensor const& query, Tensor const& value, Tensor const& x) {
    return sum(tanh(linear(x, query, {}))) + sum(sin(linear(x, value, {})) * linear(x, value, {}));
  }

  }  // namespace

  TEST_CASE("the gradients of A and B are those of W + (scale/rank) B A, by gradcheck and by the graph") {
    Parameters parameters = model(DType::float64);
    Adapters adapters(parameters, settings(3, {"query", "value"}), 5);
    Tensor const x = test::some({8, 5}, "x");
    std::vector<Tensor> bases, points;
    for (auto [name, parameter] : adapters.trained().all()) {
      if (name.ends_with(".up")) copy_elements(test::some(parameter.shape(), name), parameter);
      if (name.ends_with(".up") || name.ends_with(".down")) points.push_back(parameter.clone());
    }
    for (char const* const name : {"query", "value"})
      bases.push_back(parameters.find(std::string("blocks.0.attention.") + name + ".weight")->clone());
    auto const composed = [&](std::vector<Tensor> const& p) {
      return loss(bases[0] + 2.0 * matmul(p[1], p[0]), bases[1] + 2.0 * matmul(p[3], p[2]), x);
    };
    test::check_ok(gradcheck(composed, points));
    adapters.merge();
    loss(*parameters.find("blocks.0.attention.query.weight"), *parameters.find("blocks.0.attention.value.weight"), x).backward();
    adapters.take_gradients();
    auto const at = test::leaves(points, DType::float64);
    auto const expected = grad({composed(at)}, at);
    std::size_t i = 0;
    for (auto const& [name, parameter] : adapters.trained().all())
      if (name.ends_with(".up") || name.ends_with(".down")) CHECK(test::difference(parameter.grad(), expected[i++]) < 1e-13);
    CHECK(!parameters.find("blocks.0.attention.value.weight")->grad().defined());
  }

  TEST_CASE("at first the model is the pre-trained one; merged weights give the outputs of the sum") {
    for (DType const dtype : {DType::float64, DType::float32}) {
      Parameters parameters = model(dtype);
      Tensor const before = parameters.find("blocks.0.attention.value.weight")->clone();
      Adapters adapters(parameters, settings(2, {"value"}), 5);
      adapters.merge();
      CHECK(test::same_bits(*parameters.find("blocks.0.attention.value.weight"), before));
      Tensor const down = *adapters.trained().find("blocks.0.attention.value.down");
      Tensor up = *adapters.trained().find("blocks.0.attention.value.up");
      copy_elements(test::some(up.shape(), "up", dtype), up);
      adapters.merge();
      Tensor const x = test::some({9, 5}, "x", dtype);
      NoGrad const no_grad;
      Tensor const merged = linear(x, *parameters.find("blocks.0.attention.value.weight"), {});
      Tensor const apart = linear(x, before, {}) + 3.0 * linear(linear(x, down, {}), up, {});
      CHECK(test::difference(merged, apart) < (dtype == DType::float64 ? 1e-13 : 1e-6));
    }
  }

  TEST_CASE("the rest is frozen, but for the head; a state that is restored goes on with the same bits") {
    Parameters parameters = model(DType::float32), other = model(DType::float32);
    Adapters adapters(parameters, settings(2, {"value"}), 5), restored(other, settings(2, {"value"}), 6);
    CHECK(parameters.find("token_embedding.weight")->frozen());
    CHECK(parameters.find("blocks.0.attention.query.weight")->frozen());
    CHECK(parameters.find("blocks.0.attention.value.bias")->frozen());
    CHECK(!parameters.find("heads.classification.weight")->frozen());
    CHECK(adapters.trained().all().size() == 3);
    CHECK(adapters.trained().decays("blocks.0.attention.value.up"));
    auto const step = [](Parameters& of, Adapters& adapters_of, std::uint64_t t) {
      test::draw_gradients(of, t);
      adapters_of.take_gradients();
      make_optimizer(test::chosen(optimizer_choice(), "sgd"), adapters_of.trained())->step(0.1);
      adapters_of.merge();
    };
    step(parameters, adapters, 1);
    other.assign(parameters.all());
    restored.load_state(adapters.state());
    step(parameters, adapters, 2), step(other, restored, 2);
    for (std::size_t i = 0; i < parameters.all().size(); ++i) CHECK(test::same_bits(parameters.all()[i].second, other.all()[i].second));
  }

  TEST_CASE("a name that no weight has is refused, with those that there are") {
    Parameters parameters = model(DType::float32);
    auto const message = test::refusal([&] { Adapters(parameters, settings(2, {"query", "vlaue"}), 5); });
    CHECK(message.find("train.adapters.on: no weight is called vlaue; there are query, value") != std::string::npos);
  }
}
