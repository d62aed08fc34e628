#include "nn/models/captioning/captioner.hpp"

#include "nn/attention/attention.hpp"
#include "nn/estimator.hpp"
#include "tests/nn/plain_decoding.hpp"

TEST_SUITE("captioner") {
  using namespace heed;
  using namespace heed::test;

  namespace {

  constexpr Index levels = 5;

  CaptionerSettings tiny(std::string const& attention, bool gate = true, double doubly_stochastic = 0) {
    CaptionerSettings settings;
    settings.convolutions = 1;
    settings.channels = 3;
    settings.width = 4;
    settings.embedding = 3;
    settings.context = 9;
    settings.gate = gate;
    settings.doubly_stochastic = doubly_stochastic;
    REQUIRE(settings.attention.from_word(attention));
    return settings;
  }

  /// Two channels of 4 × 3 pixels: 2 × 2 fields.
  Signature data() {
    return {{.name = "image", .classes = levels, .vocabulary = "image", .shape = {2, 4, 3}},
            {.name = "inputs", .classes = vocabulary},
            {.name = "targets", .classes = vocabulary}};
  }

  std::unique_ptr<Model> captioner(Parameters& parameters, CaptionerSettings const& settings) {
    return model_kind("captioner").make(parameters, settings, data());
  }

  struct Subject {
    explicit Subject(CaptionerSettings const& settings, double spread = 0.7)
        : parameters(3, DType::float64, wide(spread)), made(captioner(parameters, settings)), model(*made) {}
    Parameters parameters;
    std::unique_ptr<Model> made;
    Model& model;
  };

  std::vector<CaptionerSettings> ways() {
    std::vector<CaptionerSettings> all;
    for (std::string const attention : {"none", "bahdanau", "luong", "dot", "hard"})
      for (bool const gate : {false, true}) {
        all.push_back(tiny(attention, gate));
        all.back().cell = all.size() % 3 == 0 ? "gru" : "lstm";
        if (attention == "luong" || attention == "bahdanau") all.back().doubly_stochastic = gate ? 0.5 : 0;
        if (attention == "hard") all.back().attention.style = gate ? "luong" : "bahdanau";
      }
    return all;
  }

  std::string name_of(CaptionerSettings const& s) {
    return fmt::format("{}, {} {} {} {}, gate {}, penalty {}", s.cell, s.attention.style, s.attention.score, s.attention.align,
                       s.attention.read, s.gate, s.doubly_stochastic);
  }

  Tensor some(Shape const& shape, Index classes, std::string const& name) { return random_tokens(shape, classes, name, 8); }

  Batch captions(Tensor const& inputs) {
    Tokens wanted(inputs.data<std::int64_t>().begin(), inputs.data<std::int64_t>().end());
    for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = i == 2 ? -1 : (wanted[i] + 3) % vocabulary;
    return {{"image", some({inputs.size(0), 2, 4, 3}, levels, "image")},
            {"inputs", inputs},
            {"targets", Tensor::of(wanted, inputs.shape())},
            {"lengths", Tensor::of(Tokens{2, 3}, {2})}};
  }

  }  // namespace

  TEST_CASE("the gradient of the whole model, with padding") {
    Batch const batch = captions(Tensor::of(Tokens{0, 2, 3, 4, 1, 0}, {2, 3}));
    for (CaptionerSettings const& settings : ways()) {
      if (settings.attention.read == "hard") continue;  // choices
      CAPTURE(name_of(settings));
      Parameters drawn(3, DType::float64, wide(0.7));
      captioner(drawn, settings);
      check_gradient(
          drawn, [&](Parameters& parameters) { return captioner(parameters, settings)->loss(batch, {}, 0.1); }, 8);
    }
  }

  TEST_CASE("what stands behind a caption's length changes no bit of loss and gradients; every score, align and read") {
    Batch batch = captions(some({2, 3}, vocabulary, "inputs"));
    Batch other = batch;
    other.set("inputs", changed_at(batch["inputs"], 2, vocabulary));
    int accepted = 0;
    for (auto const& score : Registry<ScoreKind>::all())
      for (auto const& align : Registry<AlignKind>::all())
        for (auto const& read : Registry<ReadKind>::all())
          for (std::string const style : {"bahdanau", "luong"}) {
            CaptionerSettings settings = tiny(style, true, read.name == "soft" ? 0.3 : 0);
            settings.attention.score = score.name, settings.attention.align = align.name, settings.attention.read = read.name;
            if (settings.attention.contradiction()) continue;
            CAPTURE(name_of(settings));
            ++accepted;
            auto const measured = [&](Batch const& rows) {
              Subject subject(settings);
              return results(subject.model, subject.parameters, rows);
            };
            auto const one = measured(batch);
            CHECK(one == measured(other));
            CHECK(all_finite(one));
          }
    CHECK(accepted >= 4 * 6);
  }

  TEST_CASE_FIXTURE(NoGrad, "what is decoded has the scores of a pass that is told the words; rows do not depend on their neighbours") {
    constexpr Index rows = 4;
    Batch const given{{"image", some({rows, 2, 4, 3}, levels, "image")}};
    for (CaptionerSettings const& settings : ways()) {
      CAPTURE(name_of(settings));
      Subject const subject(settings);
      auto const together = greedy(subject.model, given, begin, end, max_length);
      auto const beams = beam(subject.model, given, begin, end, max_length, {.width = 3});
      for (Index row = 0; row < rows; ++row) {
        Batch const alone = given.chosen(Tokens{row});
        check_same(heed::at(together, row), greedy(subject.model, alone, begin, end, max_length).front());
        check_same(heed::at(beams, row), beam(subject.model, alone, begin, end, max_length, {.width = 3}).front());
        for (Decoded const& each : heed::at(beams, row)) CHECK(std::abs(score_of(subject.model, alone, each, {}) - each.score) < 1e-10);
      }
    }
  }

  TEST_CASE("the doubly stochastic penalty is λ times (1 − the sum of a caption's weights at a field)², over all fields") {
    for (std::string const style : {"bahdanau", "luong"}) {
      CAPTURE(style);
      Subject const without(tiny(style)), with(tiny(style, true, 0.5));
      Batch const batch = captions(some({2, 3}, vocabulary, "inputs"));
      RecordedPass const recorded({.weights = true});
      Outcome const outcome = with.model.run(batch, recorded.pass);
      auto const records = recorded.records();
      REQUIRE(records.size() == 1);
      CHECK(records[0].layer == "attention");
      CHECK(records[0].of.keys == "image");
      CHECK(records[0].of.across == 2);
      Tensor const weights = records[0].weights.viewed({2, 3, 4});
      double const missing = sum_of_squares(1 - sum(weights, {1})).item();
      CHECK(outcome.penalty.item() == doctest::Approx(0.5 * missing / 2).epsilon(1e-12));
      CHECK(with.model.loss(batch, {}).item() ==
            doctest::Approx(without.model.loss(batch, {}).item() + outcome.penalty.item()).epsilon(1e-12));
      for (Index i = 0; i < 4; ++i) CHECK(weights.at(8 + i) == 0);  // behind the first caption's end
    }
  }

  TEST_CASE_FIXTURE(NoGrad, "all steps at once are the steps one by one, and are those of a decoding") {
    Subject const subject(tiny("luong"));
    Batch const batch = captions(some({2, 3}, vocabulary, "inputs"));
    Tensor const all = subject.model.logits({{"image", batch["image"]}, {"inputs", batch["inputs"]}}, {});
    auto const decoding = subject.model.decode({{"image", batch["image"]}}, {});
    for (Index t = 0; t < 3; ++t) {
      Tensor const found = decoding->scores(slice(batch["inputs"], 1, t, t + 1).viewed({2}));
      check_close(found, slice(all.viewed({2, 3, vocabulary}), 1, t, t + 1).viewed({2, vocabulary}), 1e-11);
    }
  }

  namespace {

  CaptionerSettings hard(std::string const& style, std::string const& estimator) {
    CaptionerSettings settings = tiny(style);
    settings.attention.read = "hard";
    settings.attention.estimator.estimator = estimator;
    if (estimator == "reinforce") settings.attention.estimator.entropy = 0, settings.attention.estimator.expectation_rate = 0;
    return settings;
  }

  Batch alike(Index rows) {
    Batch const one{{"image", some({1, 2, 4, 3}, levels, "image")},
                    {"inputs", Tensor::of(Tokens{0, 2, 3}, {1, 3})},
                    {"targets", Tensor::of(Tokens{2, 3, 1}, {1, 3})}};
    return one.chosen(Tokens(static_cast<std::size_t>(rows), 0));
  }

  std::vector<double> gradient(CaptionerSettings const& settings, Index rows, std::uint64_t number, double* loss = nullptr) {
    Subject subject(settings);
    Estimator estimator(*subject.model.estimator());
    Batch const batch = alike(rows);
    estimator.check(subject.model, batch);
    double const found = estimator.accumulate(subject.model, batch, training(number), 0, static_cast<double>(3 * rows));
    if (loss != nullptr) *loss = found;
    return all_gradients(subject.parameters);
  }

  /// The largest distance of the mean of 100,000 estimates from a gradient, in standard errors of the mean; over all parameters.
  double worst_z(CaptionerSettings const& settings, std::vector<double> const& exact) {
    constexpr Index rows = 1000, passes = 100;
    std::vector<double> sum(exact.size()), squares(exact.size());
    for (std::uint64_t number = 0; number < passes; ++number) {
      auto const g = gradient(settings, rows, number);
      for (std::size_t i = 0; i < g.size(); ++i) sum[i] += g[i], squares[i] += g[i] * g[i];
    }
    double worst = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      double const mean = sum[i] / passes, variance = (squares[i] / passes - mean * mean) / (passes - 1);
      if (!(std::abs(mean - exact[i]) <= 1e-12)) worst = test::worse(worst, std::abs(mean - exact[i]) / std::sqrt(variance));
    }
    return worst;
  }

  }  // namespace

  TEST_CASE("the mean of 100,000 gradients by REINFORCE is the one by enumeration; half by expectation, it is not") {
    for (std::string const style : {"bahdanau", "luong"}) {
      CAPTURE(style);
      auto const exact = gradient(hard(style, "enumerate"), 1, 0);  // of 4³ sequences of choices
      CaptionerSettings settings = hard(style, "reinforce");
      settings.attention.estimator.baseline = "self_critic";
      CHECK(worst_z(settings, exact) < 4.5);  // of some 250 parameters: 4 once in 60 times
      settings.attention.estimator.expectation_rate = 0.5;
      CHECK(worst_z(settings, exact) > 10);
    }
  }

  TEST_CASE("marginal: the gradient of the words' own probability, every field in the place of the choice") {
    CaptionerSettings const settings = hard("luong", "marginal");
    double loss = 0;
    auto const found = gradient(settings, 2, 0, &loss);

    Subject subject(settings);
    Batch const batch = alike(1);
    Tensor joint;
    for (Index field = 0; field < 4; ++field) {
      HardChoices choices;
      choices.mode = HardChoices::Mode::given;
      choices.codes = {field * (1 + 4 + 16)};  // the same digit three times
      Pass pass;
      pass.watching.hard_choices = &choices;
      Tensor const losses = token_losses(subject.model.logits(batch, pass), batch["targets"]);
      Tensor const part = squeeze(choices.made.at(0).probability, 1) * exp(-losses);
      joint = joint.defined() ? joint + part : part;
    }
    Tensor const expected = -mean(log(joint));
    CHECK(loss == doctest::Approx(expected.item()).epsilon(1e-12));
    expected.backward();
    auto const near = [](double a, double b) { return a == doctest::Approx(b).epsilon(1e-9); };
    CHECK(std::ranges::equal(found, all_gradients(subject.parameters), near));

    double expected_loss = 0;  // which bounds it from above
    gradient(hard("luong", "enumerate"), 1, 0, &expected_loss);
    CHECK(loss < expected_loss);
  }

  TEST_CASE("what has no meaning is refused, saying why") {
    CaptionerSettings settings = tiny("none", true, 1);
    CHECK(settings.contradiction() == "doubly_stochastic: without attention there are no weights");
    settings = hard("luong", "reinforce");
    settings.doubly_stochastic = 1;
    CHECK(settings.contradiction() == "doubly_stochastic: applies only to soft attention, not to hard");
    settings = hard("luong", "marginal");
    settings.attention.estimator.samples = 2;
    CHECK(settings.attention.contradiction() == "samples: marginal sums over every choice; it takes no 2 samples");
    Subject const subject(hard("bahdanau", "marginal"));
    CHECK_THROWS_WITH_AS(
        Estimator(*subject.model.estimator()).check(subject.model, alike(1)),
        doctest::Contains(
            "estimator: marginal sums over one choice at a time: it needs one head only, whose choice affects one output token only"),
        Error);
  }

  TEST_CASE("convolutions halve the sides, and each has half of the next one's channels, but eight at least") {
    CaptionerSettings settings;
    settings.convolutions = 4, settings.channels = 48;
    CHECK(settings.channels_after(3) == 48);
    CHECK(settings.channels_after(2) == 24);
    CHECK(settings.channels_after(0) == 8);
    settings.channels = 4;
    CHECK(settings.channels_after(0) == 4);
    Parameters parameters(1, DType::float32);
    settings.channels = 8;
    ImageEncoder const encoder(Scope(parameters), settings, {3, 50, 33}, 256);
    CHECK(encoder.across() == 3);
    CHECK(encoder.fields() == 4 * 3);
    CHECK(encoder(Tensor::zeros({2, 3, 50, 33}, DType::int64)).shape() == Shape{2, 12, 8});
  }
}
