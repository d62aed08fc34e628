#include "nn/optimizer.hpp"
#include "tests/nn/choice.hpp"
#include "tests/nn/models.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("muon") {
  using namespace heed;
  using test::Keys;

  namespace {

  using Values = std::vector<double>;

  /// A matrix as rows, multiplied and transposed by loops.
  struct Rows {
    Index rows, columns;
    Values values;
    double& at(Index i, Index j) { return heed::at(values, i * columns + j); }
    double at(Index i, Index j) const { return heed::at(values, i * columns + j); }
  };

  Rows transposed(Rows const& a) {
    Rows result{a.columns, a.rows, Values(a.values.size())};
    for (Index i = 0; i < a.rows; ++i)
      for (Index j = 0; j < a.columns; ++j) result.at(j, i) = a.at(i, j);
    return result;
  }

  Rows product(Rows const& a, Rows const& b) {
    Rows result{a.rows, b.columns, Values(static_cast<std::size_t>(a.rows * b.columns))};
    for (Index i = 0; i < a.rows; ++i)
      for (Index j = 0; j < b.columns; ++j)
        for (Index k = 0; k < a.columns; ++k) result.at(i, j) += a.at(i, k) * b.at(k, j);
    return result;
  }

  /// As the author's program has it: transposed if it has more rows than columns, five steps, transposed back.
  Rows newton_schulz(Rows x) {
    bool const tall = x.rows > x.columns;
    if (tall) x = transposed(x);
    double norm = 0;
    for (double const value : x.values) norm += value * value;
    for (double& value : x.values) value /= std::sqrt(norm) + 1e-7;
    for (int step = 0; step < 5; ++step) {
      Rows const a = product(x, transposed(x)), square = product(a, a);
      Rows b = a;
      for (std::size_t i = 0; i < b.values.size(); ++i) b.values[i] = -4.7750 * a.values[i] + 2.0315 * square.values[i];
      Rows const bx = product(b, x);
      for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = 3.4445 * x.values[i] + bx.values[i];
    }
    return tall ? transposed(x) : x;
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

  bool is_matrix(std::string const& name) {
    return name.ends_with("wide.weight") || name.ends_with("tall.weight") || name.ends_with("one.weight");
  }

  struct Rule {
    double lr = 0.02, momentum = 0.95, adam_lr = 3e-4, beta1 = 0.9, beta2 = 0.95, decay = 0;
    bool nesterov = true;
  };

  /// One update of a parameter, its momentum `a` (and second moment `b`).
  void update(Rule const& rule, bool matrix, bool decays, Rows& p, Values& a, Values& b, Values const& gradient, double factor, Index t) {
    double const decay = decays ? rule.decay : 0;
    Rows followed{p.rows, p.columns, Values(gradient.size())};
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      double const g = factor * gradient[i], beta = matrix ? rule.momentum : rule.beta1;
      a[i] = beta * a[i] + (1 - beta) * g;
      b[i] = rule.beta2 * b[i] + (1 - rule.beta2) * g * g;
      followed.values[i] = rule.nesterov ? (1 - rule.momentum) * g + rule.momentum * a[i] : a[i];
    }
    if (matrix) followed = newton_schulz(followed);
    double const stretch = std::sqrt(std::max(1.0, static_cast<double>(p.rows) / static_cast<double>(p.columns)));
    auto const n = static_cast<double>(t + 1);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      double const adam = a[i] / (1 - std::pow(rule.beta1, n)) / (std::sqrt(b[i] / (1 - std::pow(rule.beta2, n))) + 1e-8);
      double const lr = matrix ? rule.lr : rule.adam_lr;
      p.values[i] = (1 - lr * decay) * p.values[i] - lr * (matrix ? stretch * followed.values[i] : adam);
    }
  }

  /// The largest difference after twelve updates of the optimizer and of the rule.
  double worst(Rule const& rule, Keys const& keys, DType dtype) {
    Parameters parameters = model(dtype);
    auto const tested = make_optimizer(test::chosen(optimizer_choice(), "muon", keys), parameters);
    std::vector<Rows> expected;
    std::vector<Values> a, b;
    for (auto const& [name, parameter] : parameters.all()) {
      Index const columns = parameter.size(-1);
      expected.push_back({parameter.elements() / columns, columns, parameter.to_vector()});
      a.emplace_back(expected.back().values.size());
      b.push_back(a.back());
    }
    double worst = 0;
    for (Index t = 0; t < 12; ++t) {
      test::draw_gradients(parameters, static_cast<std::uint64_t>(t));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        auto const& [name, parameter] = parameters.all()[i];
        update(rule, is_matrix(name), parameters.decays(name), expected[i], a[i], b[i], parameter.grad().to_vector(), 0.37, t);
      }
      tested->step(rule.lr, 0.37);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        auto const found = parameters.all()[i].second.to_vector();
        for (std::size_t j = 0; j < found.size(); ++j) worst = test::worse(worst, std::abs(found[j] - expected[i].values[j]));
      }
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
      Values const before = parameters.find("blocks.0.wide.weight")->to_vector();
      tested->step(1, factor);
      Rows moved{5, 13, parameters.find("blocks.0.wide.weight")->to_vector()};
      for (std::size_t i = 0; i < before.size(); ++i) moved.values[i] -= before[i];
      double squares = 0;
      for (double const value : moved.values) squares += value * value;
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
        if (t == 0)
          for (auto [name, parameter] : parameters.all()) parameter.clear_grad();
        else
          test::draw_gradients(parameters, t);
        made->step(0.02);
        if (!reload) continue;
        auto const state = made->state();
        made = make_optimizer(test::chosen(optimizer_choice(), "muon"), parameters);
        made->load_state(state);
      }
      for (auto const& [name, tensor] : made->state()) CHECK(!name.ends_with("second.blocks.2.large.weight"));
      std::vector<Values> all;
      for (auto const& [name, parameter] : parameters.all()) all.push_back(parameter.to_vector());
      return all;
    };
    auto const expected = trained(1, false);
    for (auto const& values : expected)
      for (double const value : values) CHECK(std::isfinite(value));
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
