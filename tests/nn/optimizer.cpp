#include "nn/optimizer.hpp"

#include "autograd/ops/reduce.hpp"
#include "nn/models/blocks.hpp"
#include "tests/nn/choice.hpp"
#include "tests/nn/models.hpp"
#include "tests/refusal.hpp"

using namespace heed;
using doctest::Approx, test::Keys, test::refusal, test::values_by_name;

namespace {

using Values = std::vector<double>;

std::unique_ptr<Optimizer> optimizer(Parameters const& parameters, std::string const& kind, Keys const& values = {}) {
  return make_optimizer(test::chosen(optimizer_choice(), kind, values), parameters);
}

/// Parameters of every length that batches may leave a rest of; of vectors and matrices, some decay.
Parameters model(DType dtype = DType::float64) {
  Parameters parameters(3, dtype);
  parameters.add("scalar", {}, Initial::normal(1), WeightDecay::off);
  parameters.add("bias", {7}, Initial::normal(1), WeightDecay::off);
  parameters.add("weight", {5, 13}, Initial::normal(1), WeightDecay::on);
  parameters.add("embedding", {2, 3, 16}, Initial::normal(1), WeightDecay::on);
  parameters.add("scales", {2, 5}, Initial::normal(1), WeightDecay::off);
  parameters.add("filter", {9}, Initial::normal(1), WeightDecay::on);
  return parameters;
}

/// Gradients that differ from step to step, from 1e-6 to about 1.
void draw_gradients(Parameters& parameters, std::uint64_t step) {
  for (auto [name, parameter] : parameters.all()) {
    Stream const stream = Stream(5, "gradients").child(name).child(step);
    Tensor const size = exp(Tensor::uniform(parameter.shape(), stream.child("size"), parameter.dtype(), -14, 0));
    parameter.set_grad(Tensor::normal(parameter.shape(), stream, parameter.dtype()) * size);
  }
}

/// A parameter in float64 and what is remembered of it, and its update as the papers write it; `decay` is 0 for parameters that do not.
struct State {
  Tensor p, a, b;
};
using Rule = std::function<void(State&, Tensor g, double decay, Index t)>;

/// Runs an optimizer beside the rule, and returns the largest relative difference.
double difference(std::string const& kind, Keys const& settings, double decay, Rule const& rule, DType dtype, double lr,
                  double factor = 1) {
  Parameters parameters = model(dtype);
  auto const tested = optimizer(parameters, kind, settings);
  std::map<std::string, State> expected;
  for (auto const& [name, p] : parameters.all()) {
    Tensor const zeros = Tensor::zeros(p.shape(), DType::float64);
    expected[name] = {p.to(DType::float64).clone(), zeros, zeros};
  }
  double worst = 0;
  for (Index t = 0; t < 20; ++t) {
    draw_gradients(parameters, static_cast<std::uint64_t>(t));
    for (auto& [name, state] : expected)
      rule(state, scale(parameters.find(name)->grad().to(DType::float64), factor), parameters.decays(name) ? decay : 0, t);
    tested->step(lr, factor);
    for (auto const& [name, state] : expected) worst = test::worse(worst, test::difference(*parameters.find(name), state.p));
  }
  CHECK(tested->steps() == 20);
  return worst;
}

Rule adam_rule(double lr, double beta1, double beta2, double eps, bool decoupled) {
  return [=](State& s, Tensor g, double decay, Index t) {
    if (!decoupled) g = g + decay * s.p;
    s.a = beta1 * s.a + (1 - beta1) * g;
    s.b = beta2 * s.b + (1 - beta2) * g * g;
    if (decoupled) s.p = (1 - lr * decay) * s.p;
    Tensor const m = s.a / (1 - std::pow(beta1, to_double(t + 1))), v = s.b / (1 - std::pow(beta2, to_double(t + 1)));
    s.p = s.p - lr * m / (sqrt(v) + eps);
  };
}

Rule sgd_rule(double lr, double momentum, bool nesterov) {
  return [=](State& s, Tensor g, double decay, Index t) {
    g = g + decay * s.p;
    s.a = t == 0 ? g : momentum * s.a + g;
    s.p = s.p - lr * (nesterov ? g + momentum * s.a : s.a);
  };
}

}  // namespace

TEST_SUITE("optimizer") {
  TEST_CASE("adamw, adam and sgd follow their formulas; weight decay falls where it is declared, whatever the shape") {
    for (DType const dtype : {DType::float64, DType::float32}) {
      CAPTURE(to_string(dtype));
      double const tolerance = dtype == DType::float64 ? 1e-14 : 1e-5;
      for (bool const decoupled : {true, false}) {
        std::string const kind = decoupled ? "adamw" : "adam";
        CAPTURE(kind);
        for (double const decay : {0.0, 0.1}) {
          CHECK(difference(kind, {{"betas", Values{0.9, 0.95}}, {"weight_decay", decay}, {"eps", 1e-7}}, decay,
                           adam_rule(0.01, 0.9, 0.95, 1e-7, decoupled), dtype, 0.01, 0.37) < tolerance);
        }
      }
      for (double const momentum : {0.0, 0.9})
        for (bool const nesterov : {false, true}) {
          if (nesterov && momentum == 0) continue;
          INFO("momentum ", momentum, ", nesterov ", nesterov);
          CHECK(difference("sgd", {{"momentum", momentum}, {"nesterov", nesterov}, {"weight_decay", 0.1}}, 0.1,
                           sgd_rule(0.05, momentum, nesterov), dtype, 0.05, 1.7) < tolerance);
        }
    }
  }

  TEST_CASE("defaults are PyTorch's") {
    CHECK(difference("adamw", {}, 0.01, adam_rule(0.02, 0.9, 0.999, 1e-8, true), DType::float64, 0.02) < 1e-13);
    CHECK(difference("adam", {}, 0, adam_rule(0.02, 0.9, 0.999, 1e-8, false), DType::float64, 0.02) < 1e-13);
    CHECK(difference("sgd", {}, 0, sgd_rule(0.02, 0, false), DType::float64, 0.02) < 1e-14);
    CHECK(optimizer_choice().kind == "adamw");
    CHECK(optimizer_settings(optimizer_choice()).lr == 1e-3);
  }

  TEST_CASE("no gradient is a gradient of zeros; gradients are left as they are") {
    for (std::string const kind : {"adamw", "adam", "sgd"}) {
      CAPTURE(kind);
      Parameters with = model(), without = model();
      auto const a = optimizer(with, kind, {{"weight_decay", 0.1}});
      auto const b = optimizer(without, kind, {{"weight_decay", 0.1}});
      for (std::uint64_t t = 0; t < 3; ++t) {
        draw_gradients(with, t);
        draw_gradients(without, t);
        Tensor weight = *with.find("weight");
        weight.set_grad(Tensor::zeros(weight.shape(), weight.dtype()));
        Tensor(*without.find("weight")).clear_grad();
        Values const before = with.find("bias")->grad().to_vector();
        a->step(0.1, 0.5);
        b->step(0.1, 0.5);
        CHECK(with.find("bias")->grad().to_vector() == before);
        CHECK(!without.find("weight")->grad().defined());
      }
      CHECK(values_by_name(with) == values_by_name(without));
    }
  }

  TEST_CASE("the bits do not depend on the number of threads") {
    auto const trained = [](int count) {
      Threads const some(count);
      Parameters parameters(1, DType::float32);
      parameters.add("large", {300, 1001}, Initial::weight(), WeightDecay::on);
      parameters.add("small", {17}, Initial::weight(), WeightDecay::off);
      parameters.add("medium", {31, 997}, Initial::weight(), WeightDecay::on);
      auto const tested = optimizer(parameters, "adamw");
      AverageWeights average(parameters, 0.9);
      for (std::uint64_t t = 0; t < 3; ++t) {
        draw_gradients(parameters, t);
        tested->step(0.01, clip_factor(gradient_norm(parameters), 1));
        average.update();
      }
      auto const weights = values_by_name(parameters);
      average.swap();
      return std::pair(weights, values_by_name(parameters));
    };
    auto const one = trained(1);
    CHECK(trained(2) == one);
    CHECK(trained(3) == one);
  }

  TEST_CASE("a state that is saved and loaded continues with the same bits") {
    for (std::string const kind : {"adamw", "adam", "sgd"}) {
      CAPTURE(kind);
      Keys settings{{"weight_decay", 0.1}};
      if (kind == "sgd") settings.emplace_back("momentum", 0.9);
      for (DType const dtype : {DType::float32, DType::float64}) {
        Parameters straight = model(dtype), resumed = model(dtype);
        auto const a = optimizer(straight, kind, settings);
        for (std::uint64_t t = 0; t < 4; ++t) draw_gradients(straight, t), a->step(0.1);
        NamedTensors saved = a->state();
        resumed.assign(straight.all());
        saved.emplace_back("ema.step", Tensor::scalar(0, DType::int64));  // another's: passed over
        auto const b = optimizer(resumed, kind, settings);
        b->load_state(saved);
        CHECK(b->steps() == 4);
        for (std::uint64_t t = 4; t < 8; ++t) {
          draw_gradients(straight, t), a->step(0.1);
          draw_gradients(resumed, t), b->step(0.1);
        }
        CHECK(values_by_name(straight) == values_by_name(resumed));
        NamedTensors const end = a->state();
        saved.pop_back();
        REQUIRE(end.size() == saved.size());
        for (std::size_t i = 0; i < end.size(); ++i) {
          CHECK(end[i].first == saved[i].first);
          CHECK(end[i].second.to_vector() == b->state()[i].second.to_vector());
          CHECK(!end[i].second.shares_array_with(saved[i].second));  // copies: the later steps did not change what was saved
        }
      }
    }
  }

  TEST_CASE("weight decay: weights and tables of every position, score and align, and no bias, norm or number of a head") {
    auto const is_weight = [](std::string const& name) {
      for (char const* const norm : {"norm.weight", "norm1.weight", "norm2.weight"})
        if (name.ends_with(norm)) return false;
      for (char const* const weight :
           {".weight", "score.matrix", "score.vector", "align.position_matrix", "align.position_vector", "align.sharpness", "relative.key"})
        if (name.ends_with(weight)) return true;
      return name == "relative.bias";  // t5's table is an embedding of distances
    };
    auto const check = [&](GptSettings const& settings) {
      Parameters parameters(1, DType::float64);
      Gpt const model(parameters, settings, 7);
      auto const tested = optimizer(parameters, "adamw", {{"weight_decay", 0.5}});
      for (auto [name, parameter] : parameters.all()) {  // zeros and ones do not show what becomes of them
        for (double& value : parameter.mutable_data<double>()) value += 2;
        parameter.set_grad(Tensor::zeros(parameter.shape(), parameter.dtype()));
      }
      auto const before = values_by_name(parameters);
      tested->step(0.1);
      for (auto const& each : parameters.all()) {
        CAPTURE(each.first);
        CHECK((each.second.to_vector() != before.at(each.first)) == is_weight(each.first));
      }
    };
    auto settings = test::sized<GptSettings>(1, 2, 8, 6);
    settings.tie = false;
    for (auto const& position : Registry<PositionKind>::names()) {
      CAPTURE(position);
      settings.position = position;
      check(settings);
    }
    for (auto const& score : Registry<ScoreKind>::all()) {
      CAPTURE(score.name);
      settings.attention.score = score.name;
      for (auto const& align : Registry<AlignKind>::all()) {
        CAPTURE(align.name);
        settings.attention.align = align.name;
        check(settings);
      }
    }
    settings.attention = {};
    settings.attention.scale = "learned", settings.attention.query_key_norm = "rms";
    settings.attention.gate = settings.attention.forget = settings.attention.differential = true;
    check(settings);
  }

  TEST_CASE("the names of a state") {
    Parameters parameters(1, DType::float32);
    parameters.add("norm.weight", {4}, Initial::constant(1), WeightDecay::off);
    auto const check = [&](std::string const& kind, Keys const& settings, std::vector<std::string> const& names) {
      CHECK(mapped(optimizer(parameters, kind, settings)->state(), [](auto const& each) { return each.first; }) == names);
    };
    check("adamw", {}, {"adamw.step", "adamw.first.norm.weight", "adamw.second.norm.weight"});
    check("adam", {}, {"adam.step", "adam.first.norm.weight", "adam.second.norm.weight"});
    check("sgd", {}, {"sgd.step"});
    check("sgd", {{"momentum", 0.5}}, {"sgd.step", "sgd.velocity.norm.weight"});
  }

  TEST_CASE("a state that does not fit is refused whole, with every complaint") {
    Parameters parameters(1, DType::float32);
    Tensor w = parameters.add("w", {2, 2}, Initial::weight(), WeightDecay::on);
    auto const tested = optimizer(parameters, "adamw");
    Tensor const steps = Tensor::scalar(3, DType::int64), good = Tensor::ones({2, 2}, DType::float32);
    auto const refuses = [&](NamedTensors const& state, std::string const& complaint) {
      CHECK(refusal([&] { tested->load_state(state); }) == "state of adamw: " + complaint);
    };
    refuses({}, "'adamw.step' is missing; 'adamw.first.w' is missing; 'adamw.second.w' is missing");
    auto const with = [&](Tensor const& step, Tensor const& second) {
      return NamedTensors{{"adamw.step", step}, {"adamw.first.w", good}, {"adamw.second.w", second}};
    };
    refuses(with(steps, good.to(DType::float64)), "'adamw.second.w' is float64 [2, 2], wants float32 [2, 2]");
    refuses(with(Tensor::scalar(-1, DType::int64), good), "'adamw.step' is negative");
    refuses(with(good, good), "'adamw.step' is float32 [2, 2], wants int64 []");
    NamedTensors more = with(steps, good);
    more.emplace_back("adamw.first.v", good);
    refuses(more, "'adamw.first.v' [2, 2] belongs to no parameter");
    CHECK(tested->steps() == 0);
    CHECK(tested->state()[1].second.to_vector() == Values(4, 0));
  }

  TEST_CASE("settings: kinds, ranges and contradictions") {
    CHECK(mapped(optimizer_choice().options, &Choice::Option::name) == std::vector<std::string>{"adam", "adamw", "muon", "sgd"});
    auto const contradiction = [](std::string const& kind, Keys const& values) {
      return test::chosen(optimizer_choice(), kind, values).settings->contradiction().value_or("");
    };
    CHECK(contradiction("adamw", {{"betas", Values{0.9, 1}}}) == "betas: wants two numbers in [0, 1), found [0.9, 1]");
    CHECK(contradiction("adam", {{"betas", Values{0.9}}}) == "betas: wants two numbers in [0, 1), found [0.9]");
    CHECK(contradiction("adamw", {{"betas", Values{0.9, 0.99}}}) == "");
    CHECK(contradiction("sgd", {{"nesterov", true}}) == "nesterov: wants a momentum above 0");
    CHECK(contradiction("sgd", {{"nesterov", true}, {"momentum", 0.9}}) == "");
    CHECK_THROWS_WITH_AS(make_optimizer(Choice(), Parameters(1, DType::float32)), "optimizer: no kind is chosen", Error);
  }

  TEST_CASE("the norm of all gradients, in double precision, for any number of threads") {
    for (DType const dtype : {DType::float32, DType::float64}) {
      Parameters parameters(1, dtype);
      parameters.add("a", {123, 457}, Initial::constant(0), WeightDecay::on);
      parameters.add("b", {13}, Initial::constant(0), WeightDecay::off);
      parameters.add("unused", {13}, Initial::constant(0), WeightDecay::off);
      CHECK(gradient_norm(parameters) == 0);
      draw_gradients(parameters, 1);
      Tensor(*parameters.find("unused")).clear_grad();
      auto const all = test::all_gradients(parameters);
      double const norm = gradient_norm(parameters);
      CHECK(norm == Approx(std::sqrt(std::inner_product(all.begin(), all.end(), all.begin(), 0.0))).epsilon(1e-13));
      for (int const count : {1, 2, 3}) {
        Threads const some(count);
        CHECK(gradient_norm(parameters) == norm);
      }
    }
  }

  TEST_CASE("the norm of huge and of broken gradients") {
    Parameters parameters(1, DType::float32);
    Tensor w = parameters.add("w", {100}, Initial::constant(0), WeightDecay::off);
    w.set_grad(Tensor::full({100}, 1e30, DType::float32));  // its square is not a float
    CHECK(gradient_norm(parameters) == Approx(1e31));
    w.set_grad(Tensor::full({100}, std::numeric_limits<double>::quiet_NaN(), DType::float32));
    CHECK(std::isnan(gradient_norm(parameters)));
  }

  TEST_CASE("clipping leaves small gradients alone and brings large ones to the limit") {
    CHECK(clip_factor(0, 1) == 1);
    CHECK(clip_factor(0.5, 1) == 1);
    CHECK(clip_factor(4, 1) == 1 / (4 + 1e-6));
    CHECK(4 * clip_factor(4, 0.25) == Approx(0.25).epsilon(1e-6));
  }

  TEST_CASE("averaged weights: the weighted mean of the weights after every update") {
    for (double const decay : {0.0, 0.5, 0.99}) {
      CAPTURE(decay);
      Parameters parameters = model();
      Tensor weight = *parameters.find("weight");
      AverageWeights average(parameters, decay);
      Tensor sums = Tensor::zeros(weight.shape(), DType::float64);
      double total = 0;
      for (std::uint64_t t = 0; t < 10; ++t) {
        Tensor const next = Tensor::normal(weight.shape(), Stream(2, "w").child(t), DType::float64);
        copy_elements(next, weight);
        average.update();
        total = decay * total + 1;
        sums = decay * sums + next;
      }
      Values const last = weight.to_vector();
      {
        WithAverage const evaluating(average);
        CHECK(average.swapped());
        CHECK(test::relative_difference(weight, sums / total) <= 1e-13);
        if (decay == 0) CHECK(weight.to_vector() == last);
        CHECK_THROWS_WITH_AS(average.update(), "ema: update while the parameters hold their average", Error);
        CHECK_THROWS_WITH_AS(average.state(), "ema: state while the parameters hold their average", Error);
      }
      CHECK(weight.to_vector() == last);
    }
  }

  TEST_CASE("averaged weights: before and after the first update they are the weights") {
    Parameters parameters = model(DType::float32);
    auto const start = values_by_name(parameters);
    AverageWeights average(parameters, 0.999);
    {
      WithAverage const evaluating(average);
      CHECK(values_by_name(parameters) == start);
    }
    draw_gradients(parameters, 1);
    optimizer(parameters, "sgd")->step(0.1);
    auto const moved = values_by_name(parameters);
    CHECK(moved != start);
    average.update();
    WithAverage const evaluating(average);
    CHECK(values_by_name(parameters) == moved);
  }

  TEST_CASE("averaged weights: a state continues with the same bits, or is refused") {
    Parameters parameters = model(DType::float32);
    auto const tested = optimizer(parameters, "sgd");
    AverageWeights straight(parameters, 0.9);
    auto const advance = [&](std::uint64_t t) { draw_gradients(parameters, t), tested->step(0.1); };
    for (std::uint64_t t = 0; t < 3; ++t) advance(t), straight.update();
    AverageWeights resumed(parameters, 0.9);
    resumed.load_state(straight.state());
    for (std::uint64_t t = 3; t < 6; ++t) advance(t), straight.update(), resumed.update();
    NamedTensors const a = straight.state(), b = resumed.state();
    CHECK(a[0].first == "ema.step");
    CHECK(a[0].second.item() == 6);
    CHECK(a[2].first == "ema.average.bias");
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].second.to_vector() == b[i].second.to_vector());
    CHECK(refusal([&] { resumed.load_state({}); }).starts_with("state of ema: 'ema.step' is missing; 'ema.average.scalar' is missing"));
    CHECK_THROWS_WITH_AS(AverageWeights(parameters, 1), "ema: a decay of 1 is not in [0, 1)", Error);
  }
}
