#include "autograd/ops/shape.hpp"
#include "nn/estimator.hpp"
#include "nn/models/bert.hpp"
#include "tests/nn/choice.hpp"
#include "tests/nn/models.hpp"
#include "tests/nn/reference.hpp"
#include "tests/nn/small_model.hpp"

// Hard attention and the estimators of its gradient, held against the exact gradient of the expected loss by enumeration.
//
// HEED_DRAWS sets how many estimates are averaged; 100000 is the number that the project's issue asks for.

TEST_SUITE("hard") {
  using namespace heed;
  using test::all_gradients, test::hard, test::training;

  namespace {

  using Reach = HardChoices::Reach;

  Index draws() {
    char const* const wanted = std::getenv("HEED_DRAWS");
    return wanted != nullptr ? std::atoll(wanted) : 50000;
  }

  constexpr Index words = 3;

  struct Made {
    std::unique_ptr<Parameters> parameters;
    std::unique_ptr<Model> model;
    Index length;
  };
  using Maker = std::function<Made(AttentionSettings const&)>;

  std::unique_ptr<Parameters> wide_parameters() { return std::make_unique<Parameters>(4, DType::float64, test::wide(0.7)); }

  Maker gpt(Index layers, Index heads, Index length, double dropout = 0, std::string const& head = "language_model") {
    return [=](AttentionSettings const& attention) {
      auto settings = test::sized<GptSettings>(layers, heads, 4, length);
      settings.attention = attention;
      settings.dropout = dropout;
      settings.head = test::chosen(settings.head, head);
      auto parameters = wide_parameters();
      auto model = std::make_unique<Gpt>(*parameters, settings, Signature::tokens(words));
      return Made{std::move(parameters), std::move(model), length};
    };
  }

  /// Two layers of attention in which every place sees every other.
  struct Bidirectional : test::SmallModel {
    Bidirectional(Parameters& parameters, AttentionSettings const& settings, Index length)
        : SmallModel(length, words, 4),
          attention(settings),
          tokens(Scope(parameters).at("tokens"), words, 4),
          where(Scope(parameters).parameter("where", {length, 4}, Initial::weight(), WeightDecay::on)),
          first(Scope(parameters).at("first"), settings, {4, 1, 4, 4, length}, false, 0, 1),
          second(Scope(parameters).at("second"), settings, {4, 1, 4, 4, length}, false, 0, 1) {}
    Outcome run(Batch const& batch, Pass const& pass) const override {
      Tensor x = tokens(batch["inputs"]) + where;
      x = x + tanh(first(x, x, {}, pass, 0));
      x = x + tanh(second(x, x, {}, pass, 1));
      return {{{Term(), {x, tokens.weight}}}};
    }
    EstimatorSettings const* estimator() const override { return attention.estimator_if_hard(); }

    AttentionSettings attention;
    Embedding tokens;
    Tensor where;
    MultiHead first, second;
  };

  Made bidirectional(AttentionSettings const& settings) {
    auto parameters = wide_parameters();
    auto model = std::make_unique<Bidirectional>(*parameters, settings, 2);
    return {std::move(parameters), std::move(model), 2};
  }

  /// `rows` times the same sequence; with three places its first target does not count.
  Batch alike(Index rows, Index length) {
    std::vector<Index> inputs, targets;
    for (Index i = 0; i < rows * length; ++i) {
      inputs.push_back((i % length) % words);
      targets.push_back(length == 3 && i % length == 0 ? -1 : (i % length + 1) % words);
    }
    return {{"inputs", Tensor::of(inputs, {rows, length})}, {"targets", Tensor::of(targets, {rows, length})}};
  }

  /// The gradient of one step over `rows` alike sequences, and its loss.
  Tensor one_gradient(Made& made, Estimator& estimator, Index rows, Pass const& pass, double* loss = nullptr) {
    made.parameters->clear_gradients();
    estimator.begin_step();
    double const found = estimator.accumulate(*made.model, alike(rows, made.length), pass, 0, static_cast<double>(rows * made.length));
    estimator.end_step();
    if (loss != nullptr) *loss = found;
    auto const all = all_gradients(*made.parameters);
    return Tensor::of(all, {std::ssize(all)});
  }

  Tensor one_gradient(Made& made, Index rows, Pass const& pass, double* loss = nullptr) {
    Estimator estimator(*made.model->estimator());
    return one_gradient(made, estimator, rows, pass, loss);
  }

  Tensor exact_gradient(Maker const& maker) {
    Made made = maker(hard("enumerate"));
    return one_gradient(made, 1, training(0));
  }

  struct Estimate {
    Tensor mean, error;  ///< the error is the standard error of the mean
    Index groups;
  };

  /// The mean of `count` estimates, its error from the means of groups of 500.
  Estimate estimate(Maker const& maker, AttentionSettings const& settings, Index count) {
    Index const rows = 500, groups = std::max<Index>(count / rows, 20);
    Made made = maker(settings);
    Estimator estimator(*made.model->estimator());
    std::vector<Tensor> means;
    for (Index k = 0; k < groups; ++k) means.push_back(one_gradient(made, estimator, rows, training(static_cast<std::uint64_t>(k))));
    Tensor const all = stack(means, 0);
    return {mean(all, {0}), sqrt(variance(all, {0}) / to_double(groups - 1)), groups};
  }

  /// The two-sided quantile of Student's t at `level` (Cornish–Fisher from the normal one).
  double critical(double level, Index groups) {
    double low = 0, high = 40;
    for (int k = 0; k < 100; ++k) {
      double const middle = (low + high) / 2;
      (std::erfc(middle / std::sqrt(2.0)) > level ? low : high) = middle;
    }
    return low * (1 + (low * low + 1) / (4 * static_cast<double>(groups - 1)));
  }

  /// The largest |mean − exact| in standard errors; numbers that never vary must agree to rounding.
  double worst(Estimate const& e, Tensor const& exact) {
    REQUIRE(e.mean.shape() == exact.shape());
    double result = 0;
    for (Index i = 0; i < exact.elements(); ++i) {
      double const off = std::abs(e.mean.at(i) - exact.at(i)), error = e.error.at(i);
      if (error < 1e-9)
        CHECK(off < 1e-7);
      else
        result = test::worse(result, off / error);
    }
    return result;
  }

  double norm(Tensor const& x) { return std::sqrt(sum_of_squares(x).item()); }

  }  // namespace

  TEST_CASE("enumeration is the gradient of the expected loss") {
    Made made = gpt(1, 1, 3)(hard("enumerate"));
    Tensor const g = one_gradient(made, 1, training(0));
    // By finite differences of the expected loss itself, in every parameter.
    Index i = 0;
    for (auto const& each : made.parameters->all()) {
      CAPTURE(each.first);
      Tensor parameter = each.second;
      for (double& value : parameter.mutable_data<double>()) {
        double const before = value, h = 1e-5;
        double up = 0, down = 0;
        value = before + h;
        one_gradient(made, 1, training(0), &up);
        value = before - h;
        one_gradient(made, 1, training(0), &down);
        value = before;
        CHECK(g.at(i++) == doctest::Approx((up - down) / (2 * h)).epsilon(1e-5).scale(1));
      }
    }
  }

  TEST_CASE("the mean of REINFORCE's gradients is the exact one, for every parameter and baseline") {
    std::map<std::string, Maker> const subjects{{"gpt, 2 layers, 2 heads, 3 places", gpt(2, 2, 3)},
                                                {"bidirectional, 2 layers, 2 places", bidirectional}};
    char const* const baselines[]{"none", "moving_average", "self_critic", "leave_one_out"};
    Index compared = 0;
    for (auto const& subject : subjects) compared += std::ssize(baselines) * exact_gradient(subject.second).elements();
    for (auto const& subject : subjects) {
      Tensor const exact = exact_gradient(subject.second);
      for (std::string const baseline : baselines) {
        INFO("subject.first ", subject.first, ", baseline ", baseline);
        Estimate const e = estimate(subject.second, hard("reinforce", baseline), draws());
        double const z = worst(e, exact), limit = critical(0.01 / to_double(compared), e.groups);
        MESSAGE("worst of " << compared << " numbers " << z << " standard errors (at most " << limit << ")");
        CHECK(z < limit);
      }
    }
  }

  TEST_CASE("a choice of the last layer touches its own place; below, it touches what can see it") {
    auto settings = test::sized<StackSettings>(3, 1, 4, 3);
    settings.attention = hard();
    Parameters of_gpt(1, DType::float64), of_bert(1, DType::float64);
    Gpt const causal(of_gpt, settings, words);
    Bert const bert(of_bert, settings, words);
    for (bool const recompute : {false, true}) {
      Pass const pass = training(1, recompute);
      CHECK(test::reaches(causal, alike(2, 3), pass) == std::vector{Reach::later, Reach::later, Reach::position});
      CHECK(test::reaches(bert, alike(2, 3), pass) == std::vector{Reach::sequence, Reach::sequence, Reach::position});
    }
    Made const through_one = gpt(2, 1, 3, 0, "bottleneck")(hard());
    CHECK(test::reaches(*through_one.model, alike(2, 3)) == std::vector{Reach::later, Reach::later});
  }

  TEST_CASE("straight-through, Gumbel and the expectation are biased, measurably") {
    Maker const maker = gpt(2, 1, 3);
    Tensor const exact = exact_gradient(maker);
    auto const measure = [&](std::string const& name, AttentionSettings const& settings, Index count) {
      Estimate const e = estimate(maker, settings, count);
      double const z = worst(e, exact);
      MESSAGE(name << ": bias " << norm(e.mean - exact) / norm(exact) << " of the gradient's norm (error of the mean "
                   << norm(e.error) / norm(exact) << "), worst " << z << " standard errors");
      CHECK(z > critical(0.01 / to_double(exact.elements()), e.groups));
    };
    measure("straight_through", hard("straight_through"), draws() / 10);
    measure("gumbel, temperature 1", hard("gumbel"), draws() / 10);
    AttentionSettings mixed = hard();
    mixed.estimator.expectation_rate = 0.5;
    measure("reinforce, expectation_rate 0.5", mixed, draws() / 2);
  }

  TEST_CASE("estimates are pure functions of the step, with recomputation or without") {
    for (auto const& each : {std::pair{"reinforce", "moving_average"},
                             {"reinforce", "leave_one_out"},
                             {"reinforce", "self_critic"},
                             {"straight_through", ""},
                             {"gumbel", ""}}) {
      INFO("each.first ", each.first, ", each.second ", each.second);
      AttentionSettings settings = hard(each.first, each.second);
      if (settings.estimator.estimator == "reinforce") settings.estimator.entropy = 0.1;
      Made made = gpt(2, 2, 3, 0.2)(settings);
      auto const gradient = [&](std::uint64_t number, bool again) { return one_gradient(made, 4, training(number, again)); };
      Tensor const once = gradient(1, false);
      CHECK(norm(once) > 0);
      CHECK(same_bits(once, gradient(1, false)));
      CHECK(norm(once - gradient(1, true)) < 1e-12 * norm(once));
      CHECK(!same_bits(once, gradient(2, false)));
    }
  }

  TEST_CASE("the moving average goes on where its state was kept") {
    AttentionSettings const settings = hard("reinforce", "moving_average");
    Made made = gpt(1, 1, 3)(settings);
    Estimator straight(settings.estimator);
    NamedTensors state;
    Tensor last;
    for (std::uint64_t step = 0; step < 6; ++step) {
      if (step == 3) state = straight.state();
      last = one_gradient(made, straight, 4, training(step));
    }
    Estimator resumed(settings.estimator);
    resumed.load_state(state);
    Tensor again;
    for (std::uint64_t step = 3; step < 6; ++step) again = one_gradient(made, resumed, 4, training(step));
    CHECK(same_bits(again, last));
    Estimator fresh(settings.estimator);
    CHECK(!same_bits(one_gradient(made, fresh, 4, training(5)), last));
    CHECK_THROWS_WITH_AS(fresh.load_state({}), "there is no 'estimator.moving_average'", Error);
  }

  TEST_CASE("the entropy bonus is the gradient of the mean entropy") {
    AttentionSettings settings = hard();
    settings.estimator.reward_weight = 0;
    Maker const maker = gpt(1, 1, 3);
    auto const with = [&](double weight) {
      settings.estimator.entropy = weight;
      Made made = maker(settings);
      return one_gradient(made, 1, training(0));
    };
    Tensor const bonus = with(0.5) - with(0);
    Made made = maker(settings);
    test::ChoosingPass const choosing;
    made.model->logits(alike(1, 3), choosing.pass);
    REQUIRE(choosing.choices.made.size() == 1);
    scale(sum(choosing.choices.made[0].entropy), -0.5 / 3).backward();
    CHECK(test::absolute_difference(bonus, Tensor::of(all_gradients(*made.parameters), bonus.shape())) < 1e-12);
  }

  TEST_CASE("token losses are those of cross_entropy") {
    Tensor const logits = Tensor::normal({2, 3, 5}, Stream(7, "logits"), DType::float64);
    Tensor const targets = Tensor::of(std::vector<Index>{0, 4, -1, 2, -1, 3}, {2, 3});
    for (double const smoothing : {0.0, 0.1})
      CHECK(sum(token_losses(logits, targets, smoothing)).item() / 4 ==
            doctest::Approx(cross_entropy(logits, targets, smoothing).item()).epsilon(1e-14));
    CHECK(token_losses(logits, targets).at(2) == 0);
  }

  TEST_CASE("what has no meaning is refused, saying why") {
    AttentionSettings usual;
    usual.read = "hard";
    auto const said = [&](auto const& change) { return test::said(usual, change); };
    CHECK(said([](auto&) {}) == "");
    CHECK(said([](auto& s) { s.align = "sigmoid"; }) ==
          "read: hard samples a key from each query's weights, but the weights of the align 'sigmoid' do not sum to one; those of "
          "adaptive, asentmax, entmax15, local_m, softmax, sparsemax, ssmax do");
    CHECK(said([](auto& s) { s.align = "local_p"; }).starts_with("read: hard samples"));
    CHECK(said([](auto& s) { s.estimator.baseline = "leave_one_out"; }) ==
          "samples: leave_one_out compares each sample with the others: it needs at least 2, not 1");
    CHECK(said([](auto& s) { s.read = "soft", s.estimator.samples = 2; }) == "samples: applies only to the read 'hard', not to 'soft'");
    CHECK(said([](auto& s) { s.read = "soft", s.estimator.evaluate = "sample"; }) ==
          "evaluate: applies only to the read 'hard', not to 'soft'");
    CHECK(said([](auto& s) { s.estimator.temperature = 2; }) == "temperature: applies only to the estimator gumbel, not to reinforce");
    CHECK(said([](auto& s) { s.estimator.estimator = "gumbel", s.estimator.baseline = "none"; }) ==
          "baseline: applies only to the estimator reinforce, not to gumbel");
    CHECK(said([](auto& s) { s.estimator.estimator = "enumerate", s.estimator.samples = 2; }) ==
          "samples: enumerate sums over every choice; it takes no 2 samples");

    AttentionSettings short_name;
    CHECK(short_name.from_word("hard"));
    CHECK(short_name.read == "hard");
    CHECK(short_name.score == "scaled_dot");

    Made large = gpt(2, 2, 6)(hard("enumerate"));
    Estimator const estimator(*large.model->estimator());
    CHECK_THROWS_WITH_AS(
        estimator.check(*large.model, alike(1, 6)),
        "estimator: enumerate would sum over 2.69e+11 combinations of choices per sequence, more than 65536; use fewer layers, heads "
        "or positions, or reinforce",
        Error);
  }

  TEST_CASE("what stands behind the lengths changes no bit of an estimate: padding chooses nothing") {
    for (std::string const estimator : {"reinforce", "straight_through", "gumbel", "enumerate"})
      for (std::string const baseline : {"none", "moving_average", "self_critic", "leave_one_out"}) {
        if (estimator != "reinforce" && baseline != "none") continue;
        INFO("estimator ", estimator, ", baseline ", baseline);
        auto settings = test::sized<BertSettings>(1, 1, 4, 4);
        settings.attention = hard(estimator, baseline);
        if (estimator == "reinforce") settings.attention.estimator.entropy = 0.1;
        auto const parameters = wide_parameters();
        Bert const bert(*parameters, settings, words);
        auto const estimate = [&](Index padding, bool padded) {
          Batch batch{{"inputs", Tensor::of(std::vector<Index>{1, 0, 2, padding, 2, 1, padding, padding}, {2, 4})},
                      {"targets", Tensor::of(std::vector<Index>{0, 2, 1, -1, 1, 1, -1, -1}, {2, 4})}};
          if (padded) batch.set("lengths", Tensor::of(std::vector<Index>{3, 2}, {2}));
          parameters->clear_gradients();
          Estimator estimates(*bert.estimator());
          for (std::uint64_t step = 0; step < 2; ++step) {
            estimates.begin_step();
            estimates.accumulate(bert, batch, training(step), 0, 5);
            estimates.end_step();
          }
          return all_gradients(*parameters);
        };
        CHECK(estimate(0, true) == estimate(1, true));
        CHECK(estimate(0, false) != estimate(1, false));
      }
  }
}
