#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "nn/optimizer.hpp"
#include "tests/nn/choice.hpp"
#include "tests/nn/models.hpp"

TEST_SUITE("muon") {
  using namespace heed;
  using test::Keys;

  namespace {

  /// As the author's program has it: transposed if it has more rows than columns, five steps, transposed back.
  Tensor newton_schulz(Tensor const& direction) {
    bool const tall = direction.size(0) > direction.size(1);
    Tensor x = tall ? transpose(direction) : direction;
    x = x / (std::sqrt(sum_of_squares(x).item()) + 1e-7);
    for (int step = 0; step < 5; ++step) {
      Tensor const a = matmul(x, transpose(x));
      x = 3.4445 * x + matmul(-4.7750 * a + 2.0315 * matmul(a, a), x);
    }
    return tall ? transpose(x) : x;
  }

  Parameters model(DType dtype) {
    Parameters parameters(3, dtype);
    parameters.add("token_embedding.weight", {6, 4}, Initial::normal(1), WeightDecay::on);
    parameters.add("blocks.0.wide.weight", {5, 13}, Initial::normal(1), WeightDecay::on);
    parameters.add("blocks.0.tall.weight", {12, 3}, Initial::normal(1), WeightDecay::on);
    parameters.add("blocks.1.one.weight", {1, 1}, Initial::normal(1), WeightDecay::on);
    parameters.add("blocks.1.tall.bias", {12}, Initial::normal(1), WeightDecay::off);
    parameters.add("blocks.1.relative.weight", {4, 4}, Initial::normal(1), WeightDecay::on);
    parameters.add("head.weight", {6, 4}, Initial::normal(1), WeightDecay::on);
    return parameters;
  }

  struct Rule {
    double lr = 0.02, momentum = 0.95, adam_lr = 3e-4, beta1 = 0.9, beta2 = 0.95, decay = 0;
    bool nesterov = true;
  };

  /// A parameter as rows, in float64, its momentum and its second moment.
  struct State {
    Tensor p, a, b;
  };

  /// One update.
  void update(Rule const& rule, bool matrix, bool decays, State& s, Tensor const& g, Index t) {
    double const beta = matrix ? rule.momentum : rule.beta1, lr = matrix ? rule.lr : rule.adam_lr, n = static_cast<double>(t + 1);
    s.a = beta * s.a + (1 - beta) * g;
    s.b = rule.beta2 * s.b + (1 - rule.beta2) * g * g;
    s.p = (1 - lr * (decays ? rule.decay : 0)) * s.p;
    if (matrix) {
      double const stretch = std::sqrt(std::max(1.0, static_cast<double>(s.p.size(0)) / static_cast<double>(s.p.size(1))));
      s.p = s.p - lr * stretch * newton_schulz(rule.nesterov ? (1 - beta) * g + beta * s.a : s.a);
    } else {
      s.p = s.p - lr / (1 - std::pow(rule.beta1, n)) * s.a / (sqrt(s.b / (1 - std::pow(rule.beta2, n))) + 1e-8);
    }
  }

  /// The largest difference after twelve updates of the optimizer and of the rule.
  double worst(Rule const& rule, Keys const& keys, DType dtype) {
    Parameters parameters = model(dtype);
    auto const tested = make_optimizer(test::chosen(optimizer_choice(), "muon", keys), parameters);
    std::vector<State> expected;
    auto const rows_of = [](Tensor const& x) { return x.to(DType::float64).viewed({x.elements() / x.size(-1), x.size(-1)}).clone(); };
    for (auto const& [name, parameter] : parameters.all()) {
      Tensor const zeros = scale(rows_of(parameter), 0);
      expected.push_back({rows_of(parameter), zeros, zeros});
    }
    double worst = 0;
    for (Index t = 0; t < 12; ++t) {
      test::draw_gradients(parameters, static_cast<std::uint64_t>(t));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        auto const& [name, parameter] = parameters.all()[i];
        bool const matrix = name.ends_with("wide.weight") || name.ends_with("tall.weight") || name.ends_with("one.weight");
        update(rule, matrix, parameters.decays(name), expected[i], scale(rows_of(parameter.grad()), 0.37), t);
      }
      tested->step(rule.lr, 0.37);
      for (std::size_t i = 0; i < expected.size(); ++i)
        worst = test::worse(worst, test::absolute_difference(rows_of(parameters.all()[i].second), expected[i].p));
    }
    return worst;
  }

  }  // namespace

  TEST_CASE("matrices of layers follow Newton-Schulz's direction, wide ones and tall ones; the rest is adamw's, at its rate") {
    for (DType const dtype : {DType::float64, DType::float32}) {
      double const tolerance = dtype == DType::float64 ? 1e-12 : 2e-5;
      CHECK(worst({}, {}, dtype) < tolerance);
      CHECK(worst({.lr = 0.1, .momentum = 0.8, .adam_lr = 0.01, .decay = 0.1, .nesterov = false},
                  {{"lr", 0.1}, {"momentum", 0.8}, {"adam_lr", 0.01}, {"weight_decay", 0.1}, {"nesterov", false}}, dtype) < tolerance);
    }
  }

  TEST_CASE("an update of a matrix does not depend on the gradient's size, and has singular values near one") {
    for (double const factor : {1e-3, 1e6}) {
      Parameters parameters = model(DType::float64);
      auto const tested = make_optimizer(test::chosen(optimizer_choice(), "muon"), parameters);
      test::draw_gradients(parameters, 1);
      Tensor const weight = *parameters.find("blocks.0.wide.weight"), before = weight.clone();
      tested->step(1, factor);
      double const squares = sum_of_squares(weight.detach() - before).item();
      CHECK(squares > 5 * 0.65 * 0.65);
      CHECK(squares < 5 * 1.25 * 1.25);
    }
  }

  TEST_CASE("no gradient is no NaN; a matrix has one state; bits are the same on any number of threads and after loading") {
    auto const trained = [](int threads, bool reload) {
      Threads const some(threads);
      Parameters parameters = model(DType::float32);
      parameters.add("blocks.2.large.weight", {200, 70}, Initial::weight(), WeightDecay::on);
      auto made = make_optimizer(test::chosen(optimizer_choice(), "muon"), parameters);
      for (std::uint64_t t = 0; t < 4; ++t) {
        if (t > 0) test::draw_gradients(parameters, t);  // the first update has none
        made->step(0.02);
        if (!reload) continue;
        auto const state = made->state();
        made = make_optimizer(test::chosen(optimizer_choice(), "muon"), parameters);
        made->load_state(state);
      }
      for (auto const& [name, tensor] : made->state()) CHECK(!name.ends_with("second.blocks.2.large.weight"));
      return test::values_by_name(parameters);
    };
    auto const expected = trained(1, false);
    for (auto const& each : expected)
      for (double const value : each.second) CHECK(std::isfinite(value));
    CHECK(trained(3, false) == expected);
    CHECK(trained(2, true) == expected);
  }

  TEST_CASE("a group's own rate replaces adam_lr; its factor multiplies it") {
    auto const moved = [](Keys const& keys, std::optional<double> lr, std::optional<double> factor) {
      Parameters parameters = model(DType::float64);
      auto choice = test::chosen(optimizer_choice(), "muon", keys);
      auto& settings = dynamic_cast<OptimizerSettings&>(*choice.settings);
      if (lr || factor) {
        GroupSettings group;
        group.match = "head.*", group.lr = lr, group.lr_factor = factor;
        settings.groups.items.push_back(group);
      }
      auto const tested = make_optimizer(choice, parameters);
      test::draw_gradients(parameters, 1);
      tested->step(settings.lr);
      return parameters.find("head.weight")->clone();
    };
    auto const expected = moved({{"adam_lr", 0.006}}, {}, {});
    CHECK(test::difference(moved({{"adam_lr", 0.1}}, 0.006, {}), expected) < 1e-14);
    CHECK(test::difference(moved({{"adam_lr", 0.003}}, {}, 2.0), expected) < 1e-14);
  }
}
