#include "autograd/ops/index.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "nn/estimator.hpp"
#include "tests/nn/models.hpp"
#include "tests/nn/reference.hpp"
#include "tests/nn/small_model.hpp"

// The estimators of hard attention's gradient at one choice alone, where the gradient and its variance have formulas.

TEST_SUITE("one_choice") {
  using namespace heed;
  using test::hard, test::training;

  namespace {

  using Reach = HardChoices::Reach;

  /// One query over L keys with the scores z of its own, [B, L]; reading key j makes the first of two words have probability f_j.
  struct Bandit : test::SmallModel {
    Bandit(EstimatorSettings const& e, Tensor const& z, Tensor const& f)
        : SmallModel(1, 2), settings(e), scores(z), values(stack({log(f), log(1 - f)}, -1)) {
      scores.set_requires_grad();
      AttentionSettings attention = hard();
      attention.estimator = e;
      Parameters none(1, DType::float64);
      read = Registry<ReadKind>::find("hard")->make(Scope(none), attention, {1, 1, z.size(1)});
    }
    Outcome run(Batch const& batch, Pass const& pass) const override {
      Index const times = batch["inputs"].size(0) / scores.size(0);
      auto const again = [times](Tensor const& x) { return concatenate(std::vector(static_cast<std::size_t>(times), x), 0); };
      Tensor const weights = softmax(reshape(again(scores), {-1, 1, 1, scores.size(1)}));
      Tensor const scored = matmul(test::read_of(*read, weights, {}, pass, "bandit"), unsqueeze(again(values), 1));
      return {{{Term(), {squeeze(scored, 1)}}}};
    }
    EstimatorSettings const* estimator() const override { return &settings; }

    EstimatorSettings settings;
    mutable Tensor scores;
    Tensor values;
    std::unique_ptr<Read> read;
  };

  /// Each row's own gradient ∂/∂z of its own loss, [B, L], after so many steps that the moving average has settled.
  Tensor row_gradients(AttentionSettings const& settings, Tensor const& z, Tensor const& f, int steps = 1) {
    Bandit const bandit(settings.estimator, z.clone(), f);
    Estimator estimator(settings.estimator);
    Tensor const zeros = Tensor::zeros({z.size(0), 1}, DType::int64);
    Batch const batch{{"inputs", zeros}, {"targets", zeros}};
    for (int step = 0; step < steps; ++step) {
      bandit.scores.clear_grad();
      estimator.begin_step();
      estimator.accumulate(bandit, batch, training(static_cast<std::uint64_t>(step)), 0, 1);
      estimator.end_step();
    }
    return bandit.scores.grad();
  }

  /// The mean over rows of ‖g − E g‖².
  double variance_of(Tensor const& g, Tensor const& expected) {
    Tensor const off = g - expected;
    return sum(off * off).item() / static_cast<double>(g.size(0));
  }

  /// z ~ N(0, 1) and f ~ U(0.01, 0.99).
  std::pair<Tensor, Tensor> drawn(std::uint64_t seed, Shape const& shape) {
    return {Tensor::normal(shape, Stream(seed, "z"), DType::float64),
            Tensor::uniform(shape, Stream(seed, "f"), DType::float64, 0.01, 0.99)};
  }

  /// What it is by the formula, with losses r of which the baseline b is taken: Σ_i p_i (r_i − b)² ‖e_i − p‖² − ‖g‖².
  double formula(Tensor const& p, Tensor const& off, Tensor const& g) {
    Tensor const spread = 1 - 2 * p + sum(p * p, {1}, true);
    return (sum(p * off * off * spread).item() - sum(g * g).item()) / static_cast<double>(p.size(0));
  }

  }  // namespace

  TEST_CASE("a reward is the loss that the choice can still touch") {
    // Two places with a choice of their own each: the gradient of query i's scores is R_i (e_J − p_i), and its positive element is at J.
    struct TwoPositions : Bandit {
      TwoPositions(Reach how_far, Tensor const& z, Tensor const& f) : Bandit(hard().estimator, z, f), reach(how_far) {}
      Outcome run(Batch const&, Pass const& pass) const override {
        Tensor const weights = reshape(softmax(scores), {1, 1, 2, 5});
        Visibility const visibility{.causal = reach != Reach::sequence, .lengths = {}, .offset = 0};
        Tensor const chosen = test::read_of(*read, weights, visibility, pass, "two places");
        if (reach == Reach::position) pass.watching.hard_choices->made[0].reach = reach;
        return {{{Term(), {reshape(matmul(reshape(chosen, {2, 1, 5}), values), {1, 2, 2})}}}};
      }
      Reach reach;
    };
    auto const [z, f] = drawn(9, {2, 5});
    Tensor const p = softmax(z);
    for (Reach const reach : {Reach::position, Reach::later, Reach::sequence}) {
      CAPTURE(static_cast<int>(reach));
      TwoPositions const model(reach, z.clone(), f);
      Estimator estimator(model.settings);
      Tensor const zeros = Tensor::zeros({1, 2}, DType::int64);
      double const total = estimator.accumulate(model, {{"inputs", zeros}, {"targets", zeros}}, training(3), 0, 1);
      Tensor const g = model.scores.grad();
      Tensor const chosen = argmax(g, 1);
      Tensor const losses = -log(squeeze(gather(f, 1, unsqueeze(chosen, 1)), 1));
      CHECK(total == doctest::Approx(losses.at(0) + losses.at(1)));
      Tensor const reward = Tensor::of(
          std::vector<double>{reach == Reach::position ? losses.at(0) : total, reach == Reach::sequence ? total : losses.at(1)}, {2, 1});
      CHECK(max(abs(g - reward * (one_hot(chosen, 5, DType::float64) - p))).item() < 1e-12);
    }
  }

  TEST_CASE("the variance of one choice is its formula") {
    auto const [z, f] = drawn(1, {60000, 16});
    Tensor const p = softmax(z), r = -log(f);
    Tensor const g = row_gradients(hard("enumerate"), z, f);
    Tensor const by_hand = p * (r - sum(p * r, {1}, true));
    CHECK(max(abs(g - by_hand)).item() < 1e-12);
    double const measured = variance_of(row_gradients(hard(), z, f), g), expected = formula(p, r, by_hand);
    MESSAGE("16 keys, no baseline: variance " << measured << ", by the formula " << expected);
    CHECK(expected == doctest::Approx(1.41).epsilon(0.02));
    CHECK(measured == doctest::Approx(expected).epsilon(0.03));
  }

  TEST_CASE("inputs alike: a moving average lowers the variance") {
    Index const rows = 4000;
    auto const one = drawn(2, {1, 8});
    Tensor const z = expand(one.first, {rows, 8}), f = expand(one.second, {rows, 8});
    Tensor const exact = row_gradients(hard("enumerate"), z, f);
    double const none = variance_of(row_gradients(hard(), z, f), exact);
    double const average = variance_of(row_gradients(hard("reinforce", "moving_average"), z, f, 80), exact);
    Tensor const p = softmax(z), r = -log(f);
    double const expected = formula(p, r - sum(p * r, {1}, true), exact);
    MESSAGE("alike: none " << none << ", moving_average " << average << ", the formula with b = E r " << expected);
    CHECK(none > 1.2 * average);
    CHECK(average == doctest::Approx(expected).epsilon(0.1));
  }

  TEST_CASE("losses that differ widely: the other samples are the better baseline") {
    Index const rows = 4000;
    Tensor const z = Tensor::normal({rows, 8}, Stream(3, "z"), DType::float64);
    // Rows of easy and of hopeless targets.
    Tensor const level = exp(Tensor::uniform({rows, 1}, Stream(3, "level"), DType::float64, -12, -0.1));
    Tensor const f = level * Tensor::uniform({rows, 8}, Stream(3, "f"), DType::float64, 0.5, 0.99);
    Tensor const exact = row_gradients(hard("enumerate"), z, f);
    AttentionSettings average = hard("reinforce", "moving_average");
    AttentionSettings others = hard("reinforce", "leave_one_out");
    average.estimator.samples = others.estimator.samples = 4;
    double const by_average = variance_of(row_gradients(average, z, f, 80), exact);
    double const by_others = variance_of(row_gradients(others, z, f), exact);
    MESSAGE("differing widely, 4 samples: moving_average " << by_average << ", leave_one_out " << by_others);
    CHECK(by_others < 0.2 * by_average);
  }

  TEST_CASE("Gumbel's gradient is that of a softmax at the step's temperature") {
    // Hot enough, y is even whatever the noise: of Σ_j c_j y_j the gradient by z is (c − mean c) / (m τ).
    EstimatorSettings settings = hard("gumbel").estimator;
    settings.temperature = 8000;
    settings.temperature_decay = 0.01;
    Tensor const c = Tensor::normal({3, 6}, Stream(10, "c"), DType::float64);
    Tensor const even = scale(c - mean(c, {1}, true), 1.0 / 6);
    for (Index const step : {0, 150}) {
      CAPTURE(step);
      Bandit const model(settings, Tensor::normal({3, 6}, Stream(10, "z"), DType::float64), Tensor::full({3, 6}, 0.5, DType::float64));
      Pass pass = training(2);
      pass.training.step = step;
      Tensor const weights = reshape(softmax(model.scores), {3, 1, 1, 6});
      sum(reshape(test::read_of(*model.read, weights, {}, pass, "bandit"), {3, 6}) * c).backward();
      CHECK(max(abs(scale(model.scores.grad(), settings.temperature_at(step)) - even)).item() < 0.01 * max(abs(even)).item());
    }
  }

  TEST_CASE("the temperature falls to its least") {
    EstimatorSettings settings;
    CHECK(settings.temperature_at(1000) == 1);
    settings.temperature_decay = 0.01;
    CHECK(settings.temperature_at(100) == doctest::Approx(std::exp(-1)));
    CHECK(settings.temperature_at(100000) == 0.1);
  }
}
