#include "experiments/metric/probe/prober.hpp"
#include "nn/decode.hpp"
#include "tests/experiments/written.hpp"
#include "tests/nn/small_model.hpp"
#include "tests/refusal.hpp"
#include "tests/rooms.hpp"

// Sink rate, prefix matching and kurtosis, of weights and streams whose values are known.

TEST_SUITE("probed_values") {
  using namespace heed;
  using doctest::Approx;

  namespace {

  using Values = std::map<std::string, double>;
  using Weight = std::function<double(Index i, Index j)>;

  /// What a probe records of what is seen.
  Values recorded(std::string const& name, std::vector<AttentionRecord> const& layers, std::vector<Tensor> const& streams = {}) {
    auto const probe = Registry<Probe>::find(name);
    REQUIRE(probe != nullptr);
    Parameters const none(1, DType::float64);
    ProbeSettings const usual;
    Row row;
    probe->measure({usual, none, layers, streams}, row);
    return test::by_name(row);
  }

  /// Weights over `length` tokens, by rows of the batch and heads: [rows, H, n, n].
  Tensor weights_of(std::vector<std::vector<Weight>> const& rows, Index length) {
    std::vector<double> all;
    for (auto const& heads : rows)
      for (auto const& head : heads)
        for (Index i = 0; i < length; ++i)
          for (Index j = 0; j < length; ++j) all.push_back(j <= i ? head(i, j) : 0);
    return Tensor::of(all, {std::ssize(rows), std::ssize(rows.front()), length, length}, DType::float64);
  }

  /// `reading`: queries of each row that are no padding.
  AttentionRecord layer_of(std::vector<Weight> const& heads, Index length, Index reading = 1000) {
    Tensor const weights = weights_of({heads, heads}, length);
    Visibility const causal{.causal = true, .lengths = {}, .query_lengths = Tensor::of(std::vector<Index>{reading, reading}, {2})};
    AttentionRecorder recorder({.weights = true, .rows = true});
    recorder.add("", {weights, weights, causal, {}, {}, {}});
    return recorder.records().front();
  }

  double even(Index i, Index) { return 1 / static_cast<double>(i + 1); }
  double on_first(Index, Index j) { return j == 0 ? 1 : 0; }
  double on_itself(Index i, Index j) { return i == j ? 1 : 0; }

  LoadedExperiment experiment(std::string const& model, std::string const& probes, std::string const& data) {
    return test::written(
        fmt::format("dtype: float64\ndata: {}\ntrain: {{steps: 1, batch: 3}}\nmodel: {}\nprobes: {}\n", data, model, probes));
  }
  std::string const recall = "{kind: recall, pairs: 2, keys: 4, values: 4, validation: 20}";

  Values probed(Experiment const& settings, Model const& model, Parameters const& parameters, Dataset const& data) {
    Row row;
    Prober(settings.probes, settings.train.batch, 0, model, parameters, data).observe(row);
    return test::by_name(row);
  }

  /// Three heads that know what to do: one looks at what followed the same token the last time, one at all alike, one at itself.
  struct Inducing : test::SmallModel {
    Inducing() : SmallModel(13, 100'000) {}
    Outcome run(Batch const& batch, Pass const& pass) const override {
      Tensor const& inputs = batch["inputs"];
      Index const rows = inputs.size(0), length = inputs.size(1);
      auto const tokens = inputs.data<std::int64_t>();
      std::vector<std::vector<Weight>> looks;
      for (Index row = 0; row < rows; ++row) {
        auto const token = [=](Index i) { return heed::at(tokens, row * length + i); };
        auto const on_what_followed = [=](Index i, Index place) {
          Index j = i - 1;
          while (j >= 0 && token(j) != token(i)) --j;
          return place == j + 1 ? 1.0 : 0.0;
        };
        looks.push_back({on_what_followed, even, on_itself});
      }
      Tensor const weights = weights_of(looks, length);
      if (pass.watches_attention())
        pass.watching.observer->attention->add("attention", {weights, weights, {.causal = true, .lengths = {}}, weights, weights, {}});
      if (rows > 1) seen = inputs;
      return {};
    }
    std::unique_ptr<Decoding> decode(Batch const&, Pass const&) const override {
      struct Nothing : Decoding {
        Tensor scores(Tensor const&) override { return {}; }
        void restart() override {}
        void keep(std::span<Index const>) override {}
      };
      return std::make_unique<Nothing>();
    }

    mutable Tensor seen;
  };

  std::string refusal(std::string const& model, std::string const& probes, std::string const& data = recall) {
    auto const loaded = experiment(model, probes, data);
    return test::refusal<ConfigError>([&] { Trainer const trainer(loaded, true); });
  }

  }  // namespace

  TEST_CASE("a head whose mean weight on the first token is above 0.3 is a sink, of its layer and of the model") {
    std::vector<AttentionRecord> layers;
    layers.push_back(layer_of({on_first, on_itself, on_itself, even}, 16));  // even: (1 + 1/2 + … + 1/16) / 16 = 0.21
    layers.push_back(layer_of({[](auto, auto j) { return j == 0 ? 0.31 : 0.0; }, [](auto, auto j) { return j == 0 ? 0.29 : 0.0; }}, 16));
    CHECK(recorded("sink_rate", layers) == Values{{"probe.attention.sink_rate", 2.0 / 6},
                                                  {"probe.attention.sink_rate.layer0", 1.0 / 4},
                                                  {"probe.attention.sink_rate.layer1", 1.0 / 2}});
  }

  TEST_CASE("even weights of short rows are sinks; rows that see keys and weigh none count, rows that see none do not") {
    std::vector<AttentionRecord> layers;
    layers.push_back(layer_of({even}, 4));  // 25/48
    layers.push_back(layer_of({[](auto i, auto j) { return i == 0 && j == 0 ? 1.0 : 0.0; }}, 4));
    CHECK(recorded("sink_rate", layers) ==
          Values{{"probe.attention.sink_rate", 0.5}, {"probe.attention.sink_rate.layer0", 1}, {"probe.attention.sink_rate.layer1", 0}});
    layers.back() = layer_of({[](auto i, auto j) { return i == 0 && j == 0 ? 1.0 : 0.0; }}, 4, 1);
    CHECK(recorded("sink_rate", layers).at("probe.attention.sink_rate.layer1") == 1);
    CHECK(recorded("sink_rate", {}).empty());
  }

  TEST_CASE("gap function: of scores whose gaps are known, the median over queries that see three keys") {
    // Query i sees the scores 0, −1, …, −i: log k/k is largest, log 3/3, at k = 3 (log 2/2 for three keys); in the second head all gaps are
    // ten times as large.
    auto const layer =
        layer_of({[](auto, auto j) { return -static_cast<double>(j); }, [](auto, auto j) { return -10.0 * static_cast<double>(j); }}, 8);
    AttentionRecorder recorder({.weights = true, .scores = true});
    recorder.add("", {layer.weights, layer.weights, layer.visibility, {}, {}, {}});
    auto const found = recorded("gap_function", recorder.records());
    CHECK(found.at("probe.gradients.gap_function.layer0.head0") == Approx(std::log(3) / 3));
    CHECK(found.at("probe.gradients.gap_function.layer0.head1") == Approx(std::log(3) / 30));
  }

  TEST_CASE("batch: step sees in the step's own pass what a pass over the same rows shows; training stays as it is") {
    std::string const model = "{kind: gpt, layers: 2, heads: 2, width: 8, context: 12}";
    std::string const asked =
        "attention: [entropy, max_weight, max_score, distance, first_token, score_variance, sink_rate], activations: [rms, kurtosis]";
    auto const apart = experiment(model, "{batch: training, " + asked + "}", recall),
               within = experiment(model, "{batch: step, " + asked + "}", recall);
    Trainer first(apart, true), second(within, true);
    auto const prober = [](LoadedExperiment const& loaded, Trainer const& trainer) {
      auto const& settings = loaded.settings;
      return Prober(settings.probes, settings.train.batch, 0, trainer.model(), trainer.parameters(), trainer.data());
    };
    Row expected, found, plain, watched;
    prober(apart, first).observe(expected, true);
    first.train_step(plain);
    auto watching = prober(within, second);
    watching.observe(found, true);
    CHECK(found.values.empty());
    second.train_step(watched, watching.watch());
    watching.read_step(found);
    CHECK(plain.values == watched.values);
    REQUIRE(found.values.size() == expected.values.size());
    for (auto const& each : expected.values) {
      INFO(each.first);
      REQUIRE(found.find(each.first) != nullptr);
      CHECK(*found.find(each.first) == Approx(each.second).epsilon(1e-12));
    }
    Row last;
    watching.observe(last, false);
    CHECK(last.values.size() == expected.values.size());
  }

  TEST_CASE("kurtosis of a token's features: 1 of signs, (n² − 3n + 3)/(n − 1) of one among n, none of what does not vary") {
    std::vector<Tensor> streams;
    auto const stream = [&](std::vector<double> const& values) {
      streams.push_back(Tensor::of(values, {1, std::ssize(values) / 4, 4}, DType::float64));
    };
    stream({1, -1, 1, -1});
    stream({0, 7, 0, 0, 5, 5, 5, 5, 3, -3, -3, 3});
    stream({2, 2, 2, 2});
    auto const found = recorded("kurtosis", {}, streams);
    CHECK(found.size() == 2);
    CHECK(found.at("probe.activations.kurtosis.layer0") == Approx(1));
    CHECK(found.at("probe.activations.kurtosis.layer1") == Approx((7.0 / 3 + 1) / 2));
    std::vector<Tensor> const normal{Tensor::normal({2, 3, 20'000}, Stream(1, "x"), DType::float32)};
    CHECK(recorded("kurtosis", {}, normal).at("probe.activations.kurtosis.layer0") == Approx(3).epsilon(0.05));
  }

  TEST_CASE(
      "prefix matching: 1 of a head that finds what followed, 1/(i + 1) of one that looks everywhere, 0 of one that looks at itself") {
    auto const loaded = experiment("{kind: gpt, layers: 1, heads: 1, width: 4, context: 8}", "{rows: 5, attention: [induction]}", recall);
    Trainer const trainer(loaded, true);
    Inducing const model;
    auto const found = probed(loaded.settings, model, trainer.parameters(), trainer.data());
    double anywhere = 0;
    for (int i = 6; i < 12; ++i) anywhere += 1.0 / (i + 1) / 6;  // of 13 places twelve are two halves
    CHECK(found.size() == 3);
    CHECK(found.at("probe.attention.induction.layer0.head0") == 1);
    CHECK(found.at("probe.attention.induction.layer0.head1") == Approx(anywhere));
    CHECK(found.at("probe.attention.induction.layer0.head2") == 0);
    REQUIRE(model.seen.shape() == Shape{5, 12});
    std::map<Index, int> times;
    for (Index at = 0; at < 60; ++at) {
      auto const token = static_cast<Index>(model.seen.at(at));
      CHECK((token >= 0 && token < model.vocabulary()));
      ++times[token];
      if (at % 12 < 6) CHECK(token == static_cast<Index>(model.seen.at(at + 6)));
    }
    CHECK(times.size() == 30);  // of so large a vocabulary no token is drawn twice
  }

  TEST_CASE("a GPT that looks everywhere alike, and the same again: the tokens are drawn from a stream of their own") {
    auto const loaded = experiment("{kind: gpt, layers: 2, heads: 2, width: 8, context: 8}", "{attention: [induction, entropy]}", recall);
    Trainer const trainer(loaded, true);
    auto const look = [&] { return probed(loaded.settings, trainer.model(), trainer.parameters(), trainer.data()); };
    auto const before = look();
    CHECK(look() == before);
    for (auto const& [name, parameter] : trainer.parameters().all()) {
      Tensor values = parameter;
      if (name.find(".attention.key.") != std::string::npos) std::ranges::fill(values.mutable_data<double>(), 0.0);
    }
    auto const found = look();
    double anywhere = 0;
    for (int i = 4; i < 8; ++i) anywhere += 1.0 / (i + 1) / 4;
    for (char const* const head : {"layer0.head0", "layer0.head1", "layer1.head0", "layer1.head1"}) {
      CHECK(found.at(std::string("probe.attention.induction.") + head) == Approx(anywhere));
      CHECK(found.contains(std::string("probe.attention.entropy.") + head));
    }
  }

  TEST_CASE("prefix matching is refused, with its place, of models that do not continue one text by attention") {
    std::string const size = "layers: 1, heads: 1, width: 4, context: 10}", asked = "{attention: [entropy, induction]}";
    CHECK(refusal("{kind: gpt, " + size, asked).empty());
    CHECK(refusal("{kind: gpt, layers: 1, heads: 1, width: 4, context: 8}", "{attention: [sink_rate], activations: [kurtosis]}").empty());
    std::string const begin = "test:5:31: probes.attention: there is no induction here: ";
    auto const causal = begin + "it needs a causal model of one sequence of tokens";
    CHECK(refusal("{kind: bert, " + size, asked, "{kind: grammar, longest: 8, ngram_sentences: 10, validation: 5}") == causal);
    if (test::has_room("translation"))
      CHECK(refusal("{kind: transformer, layers: 1, heads: 1, width: 4, context: 50}", asked,
                    "{kind: pairs, task: {kind: reverse, length: 4}, validation: 5}") == causal);
    if (test::has_room("recurrent"))
      CHECK(refusal("{kind: recurrent_lm, width: 4, context: 8}", asked) == begin + "the model has no attention");
    CHECK(refusal("{kind: gpt, layers: 1, heads: 1, width: 4, context: 3}", asked, "{kind: induction, validation: 5}") ==
          begin + "model.context: 3 is too short for two repeated tokens");
  }
}
