#include "autograd/ops/index.hpp"
#include "autograd/ops/product.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/ops/softmax.hpp"
#include "experiments/commands/list.hpp"
#include "experiments/metric/probe/prober.hpp"
#include "nn/attention/steps.hpp"
#include "tests/experiments/runs.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/small_dataset.hpp"
#include "tests/experiments/trace.hpp"
#include "tests/experiments/written.hpp"
#include "tests/nn/models.hpp"
#include "tests/nn/small_model.hpp"
#include "tests/refusal.hpp"
#include "tests/rooms.hpp"

using namespace heed;

namespace {

using Values = std::map<std::string, double>;
using Vector = std::vector<double>;

using test::by_name;

AttentionRecord layer_of(Tensor const& scores, Tensor const& weights, Visibility const& visibility) {
  AttentionRecorder recorder({.weights = true, .rows = true});
  recorder.add("", {scores, weights, visibility, {}, {}, {}});
  return recorder.records().front();
}

std::string const everything =
    "probes: {every: 1, attention: [induction, entropy, max_weight, max_score, distance, score_mean, score_variance, first_token, "
    "sink_rate, decay_length, state_norm, state_rank], "
    "gradients: [norm_by_layer, norm_by_parameter, scores, softmax_jacobian_trace, softmax_jacobian_norm, gap_function" +
    std::string(test::has_room("recurrent") ? ", through_time" : "") +
    "], "
    "activations: [rms, kurtosis], curvature: [sharpness], rows: 2, iterations: 3}\n";
/// All but those of models that continue one text.
std::string const of_any_model = std::string(everything).replace(everything.find("induction, "), 11, "");

LoadedExperiment experiment(std::string const& model, std::string const& more) {
  return test::written(
      "dtype: float64\ndata: {kind: grammar, validation: 12, ngram_sentences: 10, longest: 4}\n"
      "train: {steps: 10, batch: 3}\ninit: {std: 0.3}\nmodel: " +
      model + "\n" + more);
}

std::string const tiny = "{kind: gpt, layers: 2, heads: 2, width: 8, context: 6}";

Prober prober_of(Experiment const& settings, Model const& model, Parameters const& parameters, Dataset const& data) {
  return {settings.probes, settings.train.batch, settings.train.label_smoothing, model, parameters, data};
}

Values observed(Prober prober) {
  Row row;
  prober.observe(row);
  return by_name(row);
}

Values probe_values(Trainer const& trainer, Experiment const& settings) {
  return observed(prober_of(settings, trainer.model(), trainer.parameters(), trainer.data()));
}

struct Digits : test::SmallDataset {
  Digits() : SmallDataset(Signature::tokens(3)) {}
  Batch training(Index index, Index batch, Index) const override {
    std::vector<Index> inputs, targets;
    for (Index i = 0; i < 3 * batch; ++i) {
      inputs.push_back((index + i * i + i / 4) % 3);
      targets.push_back((index + i + i / 3) % 3);
    }
    return {{"inputs", Tensor::of(inputs, {batch, 3})}, {"targets", Tensor::of(targets, {batch, 3})}};
  }
};

/// logits = Σ_h softmax(e_h) · x W_h, with e [2, 2, 3, 3] a parameter of two rows' scores; counts its passes.
struct Bare : test::SmallModel {
  explicit Bare(Parameters& parameters)
      : SmallModel(3, 3, 3),
        e(parameters.add("scores", {2, 2, 3, 3}, Initial::normal(1), WeightDecay::on)),
        w(parameters.add("w", {2, 3, 3}, Initial::normal(1), WeightDecay::on)) {}
  Outcome run(Batch const& batch, Pass const& pass) const override {
    ++passes;
    recorded += recording() ? 1 : 0;
    CHECK(!pass.training.noise);
    Tensor const x = reshape(one_hot(batch["inputs"], 3, e.dtype()), {2, 1, 3, 3});
    Tensor const weights = softmax(e);
    if (pass.watches_attention()) pass.watching.observer->attention->add("attention", {e, weights, Visibility{}, x, x, AttentionParts{}});
    return {{{Term(), {sum(matmul(weights, matmul(x, w)), {1})}}}};
  }

  Tensor e, w;
  mutable int passes = 0, recorded = 0;
};

struct BareRun {
  explicit BareRun(std::string const& probes) : loaded(experiment(tiny, probes)), model(parameters) {}
  Values probe_values() const { return observed(prober_of(loaded.settings, model, parameters, data)); }
  Tensor loss() const {
    Batch const batch = data.training(0, 2, 3);
    return cross_entropy(model.logits(batch, {}), batch["targets"]);
  }

  LoadedExperiment loaded;
  Digits data;
  Parameters parameters{5, DType::float64};
  Bare model;
};

/// How many eigenvalues of a symmetric matrix are above a number: as many as there are positive pivots once it is taken off the diagonal
/// (Sylvester's law of inertia).
int eigenvalues_above(double number, std::vector<Vector> a) {
  int above = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    a[k][k] -= number;
    above += a[k][k] > 0 ? 1 : 0;
    for (std::size_t i = k + 1; i < a.size(); ++i)
      for (std::size_t j = k + 1; j < a.size(); ++j) a[i][j] -= a[i][k] * a[k][j] / a[k][k];
  }
  return above;
}

/// The gradient of the loss by all parameters, in one vector.
Vector gradient(BareRun const& run) {
  Vector all;
  for (Tensor const& part : grad({run.loss()}, {run.model.e, run.model.w}))
    for (double const x : part.to_vector()) all.push_back(x);
  return all;
}

Eigenvalue of_diagonal(Vector const& diagonal, Index iterations = 1000, double tolerance = 1e-6) {
  auto const product = [&](Vector v) {
    for (std::size_t i = 0; i < v.size(); ++i) v[i] *= diagonal[i];
    return v;
  };
  return largest_eigenvalue(product, Vector(diagonal.size(), 1.0), iterations, tolerance);
}

std::string const dropped = R"(
name: tiny
seed: 3
data: {kind: grammar, validation: 12, ngram_sentences: 10, longest: 15}
train: {steps: 40, batch: 2, accumulate: 2, optimizer: {kind: adamw, lr: 1.0e-3}, ema: 0.9, evaluate: {every: 20}, checkpoint: {every: 10}}
model: {kind: gpt, layers: 2, heads: 2, width: 16, context: 16, dropout: 0.1, attention: )";

std::string const probed =
    everything.substr(0, everything.size() - 2).replace(everything.find("every: 1"), 8, "every: 3") + ", maps: {examples: 2, every: 15}}\n";

struct Runs : test::ProgramRun {
  explicit Runs(std::string const& config) : ProgramRun(config, {"--threads", "1", "--quiet", "train.batch=2"}) {}
};

}  // namespace

TEST_SUITE("probes") {
  TEST_CASE("attention that is even") {
    auto const loaded = experiment(tiny, everything);
    Trainer const trainer(loaded, true);
    for (auto const& [name, parameter] : trainer.parameters().all()) {
      Tensor values = parameter;
      if (name.find(".attention.key.") != std::string::npos) std::ranges::fill(values.mutable_data<double>(), 0.0);
    }
    auto const found = probe_values(trainer, loaded.settings);
    // Query i sees n = i + 1 keys, six queries.
    Values expected;
    for (int n = 1; n <= 6; ++n) {
      expected["attention.entropy"] += std::log(n) / 6;
      expected["attention.max_weight"] += 1.0 / n / 6;
      expected["attention.distance"] += (n - 1) / 2.0 / 6;
      expected["attention.first_token"] += 1.0 / n / 6;
      expected["gradients.jacobian_trace"] += (1 - 1.0 / n) / 6;
      expected["gradients.jacobian_norm"] += std::sqrt(n - 1.0) / n / 6;
    }
    expected["attention.score_mean"] = expected["attention.score_variance"] = 0;
    for (char const* head : {".layer0.head0", ".layer0.head1", ".layer1.head0", ".layer1.head1"})
      for (auto const& [name, value] : expected) CHECK(found.at("probe." + name + head) == doctest::Approx(value).epsilon(1e-12));
    CHECK(found.at("probe.gradients.jacobian_trace.layer1.head0.median") == doctest::Approx((2.0 / 3 + 3.0 / 4) / 2));
    CHECK(found.contains("probe.activations.rms.layer1"));
    CHECK(!found.contains("probe.activations.rms.layer2"));
  }

  TEST_CASE("any attention, against the weights that a pass shows") {
    auto const loaded = experiment("{kind: bert, layers: 1, heads: 2, width: 8, context: 6, attention: {align: sigmoid}}", of_any_model);
    Trainer const trainer(loaded, true);
    auto const found = probe_values(trainer, loaded.settings);
    test::RecordedPass recorded({.weights = true, .scores = true});
    Tensor stream;
    recorded.observer.stream = [&](std::string const& layer, Tensor const& x) {
      CHECK(layer == "blocks.0");
      stream = x;
    };
    Batch const batch = trainer.data().validation(0, 2, 6);
    trainer.model().logits(batch, recorded.pass);
    auto const layer = recorded.records().at(0);
    Tensor const &scores = layer.scores, &weights = layer.weights;
    REQUIRE(weights.shape() == Shape{2, 2, 6, 6});
    double const rows = sum(batch["lengths"].to(DType::float64)).item();
    for (Index head = 0; head < 2; ++head) {
      double first = 0, distance = 0, largest = 0, variance = 0;
      for (Index row = 0; row < 12; ++row) {
        Index const visible = heed::at(batch["lengths"].data<std::int64_t>(), row / 6);
        if (row % 6 >= visible) continue;  // padding
        auto const at = ((row / 6 * 2 + head) * 6 + row % 6) * 6;
        double total = 0, max_weight = 0, sum = 0, squares = 0;
        for (Index j = 0; j < visible; ++j) {
          double const a = weights.at(at + j), e = scores.at(at + j);
          total += a, max_weight = std::max(max_weight, a), sum += e, squares += e * e;
        }
        CHECK(std::abs(total - 1) > 1e-6);
        for (Index j = 0; j < 6; ++j) distance += weights.at(at + j) / total * std::abs(static_cast<double>(row % 6 - j)) / rows;
        first += weights.at(at) / total / rows;
        largest += max_weight / rows;
        auto const n = static_cast<double>(visible);
        variance += (squares - sum * sum / n) / (n - 1) / rows;
      }
      auto const of_head = [&](std::string const& name) { return found.at(fmt::format("probe.attention.{}.layer0.head{}", name, head)); };
      CHECK(of_head("first_token") == doctest::Approx(first));
      CHECK(of_head("distance") == doctest::Approx(distance));
      CHECK(of_head("max_weight") == doctest::Approx(largest));
      CHECK(of_head("score_variance") == doctest::Approx(variance));
    }
    CHECK(found.at("probe.activations.rms.layer0") == doctest::Approx(std::sqrt(mean(stream * stream).item())));
  }

  TEST_CASE("the softmax's Jacobian, against jacobian()") {
    Tensor const scores = Tensor::normal({1, 1, 3, 5}, Stream(2, "e"), DType::float64);
    std::vector<AttentionRecord> const layers{layer_of(scores, softmax(scores), {})};
    Vector traces, norms;
    for (Index i = 0; i < 3; ++i) {
      Tensor const j = jacobian([](Tensor const& x) { return softmax(x); }, scores.viewed({3, 5}).rows(i, 1).viewed({5}));
      double trace = 0, squares = 0;
      for (Index k = 0; k < 25; ++k) trace += k % 6 == 0 ? j.at(k) : 0, squares += j.at(k) * j.at(k);
      traces.push_back(trace), norms.push_back(std::sqrt(squares));
    }
    auto const loaded = experiment(tiny, "");
    Row row;
    for (Probe const& probe : Registry<Probe>::all())
      if (probe.name.starts_with("softmax_jacobian")) probe.measure({loaded.settings.probes, Parameters(1, DType::float64), layers}, row);
    auto const found = by_name(row);
    for (auto& [name, values] : {std::pair<std::string, Vector&>{"trace", traces}, {"norm", norms}}) {
      std::string const key = "probe.gradients.jacobian_" + name + ".layer0.head0";
      CHECK(found.at(key) == doctest::Approx((values[0] + values[1] + values[2]) / 3).epsilon(1e-12));
      std::ranges::sort(values);
      CHECK(found.at(key + ".median") == doctest::Approx(values[1]).epsilon(1e-12));
    }
  }

  TEST_CASE("rows that see nothing do not count") {
    Tensor const weights = Tensor::of(Vector{1, 0, 0.5, 0.5, 0, 0, 0, 0}, {2, 1, 2, 2});
    std::vector<AttentionRecord> const layers{
        layer_of(weights, weights, {.causal = true, .lengths = Tensor::of(std::vector<Index>{2, 0}, {2})})};
    Row row;
    record_rows(
        layers, "n", [](AttentionRow const& r) { return std::optional(1 / r[RowStatistic::squares]); }, false, row);
    CHECK(by_name(row) == Values{{"probe.n.layer0.head0", 1.5}});
  }

  TEST_CASE("gradients of scores, against those of a model whose scores are a parameter") {
    BareRun const run("probes: {gradients: [scores], batch: training, rows: 2}\n");
    auto const found = run.probe_values();
    Tensor const expected = grad(run.loss(), run.model.e);
    for (Index head = 0; head < 2; ++head) {
      Tensor const part = slice(expected, 1, head, head + 1);
      CHECK(found.at(fmt::format("probe.gradients.scores.layer0.head{}", head)) ==
            doctest::Approx(std::sqrt(sum(part * part).item())).epsilon(1e-12));
    }
    CHECK(!run.model.e.grad().defined());
  }

  TEST_CASE("norms of the step's gradient add up to grad_norm") {
    auto const loaded = experiment(tiny, "probes: {gradients: [norm_by_layer, norm_by_parameter]}\n");
    Trainer trainer(loaded, true);
    Row step, row;
    trainer.train_step(step);
    prober_of(loaded.settings, trainer.model(), trainer.parameters(), trainer.data()).read_step(row);
    auto const found = by_name(row);
    double layers = 0, parameters = 0;
    for (auto const& [name, value] : found) {
      bool const of_parameter = trainer.parameters().find(name.substr(std::string("probe.gradients.norm.").size())) != nullptr;
      (of_parameter ? parameters : layers) += value * value;
    }
    double const norm = by_name(step).at("grad_norm");
    CHECK(std::sqrt(layers) == doctest::Approx(norm).epsilon(1e-12));
    CHECK(std::sqrt(parameters) == doctest::Approx(norm).epsilon(1e-12));
    for (char const* name : {"layer0", "layer1", "token_embedding", "blocks.1.mlp.down.weight"})
      CHECK(found.at(std::string("probe.gradients.norm.") + name) > 0);
  }

  TEST_CASE("the largest eigenvalue of known matrices") {
    CHECK(of_diagonal({1, 2, 7, 3}).value == doctest::Approx(7).epsilon(1e-9));
    CHECK(of_diagonal({1, -9, 7, 3}).value == doctest::Approx(7).epsilon(1e-9));  // not the outermost, −9
    CHECK(of_diagonal({-1, -9, -2}).value == doctest::Approx(-1).epsilon(1e-9));
    CHECK(of_diagonal({0, 0}).value == 0);
    CHECK(of_diagonal({0.5, -7, 7, -3}).value == doctest::Approx(7).epsilon(1e-9));  // where power iteration swings to and fro
    Vector wide;
    for (int i = 0; i < 500; ++i) wide.push_back(i < 499 ? std::sin(i) : 2);
    CHECK(of_diagonal(wide, 60).value == doctest::Approx(2).epsilon(1e-9));
    auto const hasty = of_diagonal({1, 2, 7, 6.9}, 3, 1e-9);
    CHECK(hasty.products == 3);
    CHECK(hasty.residual > 1e-9);
    CHECK(hasty.residual >= std::abs(hasty.value - 7));
    CHECK(of_diagonal({1, 2, 7, 3}, 1000, 0.5).products < of_diagonal({1, 2, 7, 3}).products);
  }

  TEST_CASE("sharpness, against a Hessian by differences of gradients") {
    BareRun const run("probes: {curvature: [sharpness], batch: training, rows: 2, iterations: 2000, tolerance: 1.0e-5}\n");
    auto const found = run.probe_values();
    std::vector<Vector> hessian;
    double const h = 1e-5;
    for (Tensor parameter : {run.model.e, run.model.w})
      for (double& x : parameter.mutable_data<double>()) {
        double const before = x;
        x = before + h;
        Vector row = gradient(run);
        x = before - h;
        Vector const below = gradient(run);
        x = before;
        for (std::size_t i = 0; i < row.size(); ++i) row[i] = (row[i] - below[i]) / (2 * h);
        hessian.push_back(row);
      }
    REQUIRE(eigenvalues_above(-0.01, hessian) < std::ssize(hessian));  // not convex
    double const sharpness = found.at("probe.curvature.sharpness");
    CHECK(eigenvalues_above(sharpness + 1e-4 * (1 + sharpness), hessian) == 0);
    CHECK(eigenvalues_above(sharpness - 1e-4 * (1 + sharpness), hessian) > 0);
    CHECK(found.at("probe.curvature.sharpness.residual") <= 1e-5 * sharpness);
  }

  TEST_CASE("only what is asked for costs anything") {
    auto const passes = [](std::string const& probes) {
      BareRun const run("probes: {" + probes + "rows: 2, iterations: 7, tolerance: 1.0e-9}\n");
      run.probe_values();
      return std::pair(run.model.passes, run.model.recorded);
    };
    CHECK(passes("") == std::pair(0, 0));
    CHECK(passes("gradients: [norm_by_layer, norm_by_parameter], ") == std::pair(0, 0));
    CHECK(passes("attention: [entropy, distance], ") == std::pair(1, 0));
    CHECK(passes("attention: [entropy], gradients: [scores, softmax_jacobian_norm], ") == std::pair(1, 1));
    CHECK(passes("activations: [rms], ") == std::pair(1, 0));
    CHECK(passes("curvature: [sharpness], ") == std::pair(1, 1));
    auto const settings = experiment(tiny, "probes: {every: 3}\n").settings;
    Digits const data;
    Parameters parameters(1, DType::float64);
    Bare const model(parameters);
    CHECK(!prober_of(settings, model, parameters, data).due(0, true));
    auto const asked = experiment(tiny, "probes: {every: 3, activations: [rms]}\n").settings;
    Prober const prober = prober_of(asked, model, parameters, data);
    for (Index const step : {0, 1, 3}) CHECK(prober.due(step, false) == (step != 1));
    CHECK(prober.due(1, true));
  }

  TEST_CASE("every score with every align, soft and hard, in either model") {
    for (auto const& score : Registry<ScoreKind>::all())
      for (auto const& align : Registry<AlignKind>::all())
        for (std::string const model : {"gpt", "bert"})
          for (std::string const read : {"soft", "hard"}) {
            if (read == "hard" && !align.rows_are_distributions) continue;
            if (score.name == "gaussian" && align.name == "softpick") continue;  // no score is above 0: nothing is read
            std::string const position = model == "gpt" ? "t5" : "rotary";
            INFO("score.name ", score.name, ", align.name ", align.name, ", model ", model, ", read ", read);
            auto const loaded = experiment(fmt::format("{{kind: {}, layers: 1, heads: 2, width: 8, context: 5, position: {}, dropout: 0.1, "
                                                       "attention: {{score: {}, align: {}, read: {}}}}}",
                                                       model, position, score.name, align.name, read),
                                           model == "gpt" ? everything : of_any_model);
            Trainer const trainer(loaded, true);
            auto const found = probe_values(trainer, loaded.settings);
            CHECK(found.size() == (model == "gpt" ? 9 * 2 : 8 * 2) + 2 + 2 + 2 * 4 + 2 + 2);
            for (auto const& each : found) CHECK_MESSAGE(std::isfinite(each.second), each.first);
          }
  }

  TEST_CASE("what a hard read chooses does not matter: its expectation is looked at") {
    auto const soft = experiment("{kind: gpt, layers: 2, heads: 2, width: 8, context: 6}", everything);
    auto const hard = experiment("{kind: gpt, layers: 2, heads: 2, width: 8, context: 6, attention: hard}", everything);
    auto const expected = probe_values(Trainer(soft, true), soft.settings), found = probe_values(Trainer(hard, true), hard.settings);
    CHECK(found.size() == expected.size());
    for (auto const& [name, value] : expected) CHECK(found.at(name) == doctest::Approx(value).epsilon(1e-9));
  }

  TEST_CASE("training's bits are the same with probes as without") {
    for (std::string const attention : {"scaled", "hard"}) {
      CAPTURE(attention);
      Runs const with(dropped + attention + "}\n" + probed), without(dropped + attention + "}\n");
      with.train();
      without.train();
      test::check_equal(test::trace_of(with.run, false), test::trace_of(without.run, false));
      CHECK(test::get(with.run / "metrics.jsonl").find("probe.curvature.sharpness\"") != std::string::npos);
      CHECK(test::get(without.run / "metrics.jsonl").find("probe.") == std::string::npos);
    }
  }

  TEST_CASE("a run that was killed has the same probes and maps as one that was not") {
    std::string const config = dropped + "scaled}\n" + probed;
    Runs const whole(config), killed(config);
    whole.train();
    auto const expected = test::trace_of(whole.run);
    for (char const* const step : {"000000", "000040"}) CHECK(expected.files.contains(fmt::format("attention/step-{}.npz", step)));
    test::cut_off(killed, 18, SIGKILL);
    test::put(killed.run / "attention" / ".step-000030.npz.part", "torn");
    test::put(killed.run / "attention" / "step-000039.npz", "of another future");
    killed.train();
    test::check_equal(test::trace_of(killed.run), expected);
    // More steps: what was last is so no longer.
    killed.train({"train.steps=44"});
    Runs const longer(config);
    longer.train({"train.steps=44"});
    test::check_equal(test::trace_of(killed.run), test::trace_of(longer.run));
  }

  TEST_CASE("rows are written where probes are") {
    Runs const runs(dropped + "scaled}\n" + "probes: {every: 7, gradients: [norm_by_layer], activations: [rms]}\n");
    runs.train({"train.log.every=100"});
    std::vector<Index> steps, streams, norms;
    for (auto const& row : test::json_rows(runs.run / "metrics.jsonl")) {
      steps.push_back(row["step"]);
      if (row.contains("probe.activations.rms.layer1")) streams.push_back(row["step"]);
      if (row.contains("probe.gradients.norm.layer1")) norms.push_back(row["step"]);
    }
    CHECK(steps == std::vector<Index>{0, 7, 14, 20, 21, 28, 35, 40});
    CHECK(streams == std::vector<Index>{0, 7, 14, 21, 28, 35, 40});
    CHECK(norms == std::vector<Index>{0, 7, 14, 21, 28, 35});  // no step is made after the last
  }

  TEST_CASE("probes are named in YAML and in heed list") {
    test::check_refusals<ConfigError>([](std::string const& keys) { experiment(tiny, "probes: {" + keys + "}\n"); },
                                      {{"attention: [entropi]", "did you mean 'entropy'?"},
                                       {"gradient: [scores]", "did you mean 'gradients'?"},
                                       {"attention: [entropy, distance, entropy]", "'entropy' is listed twice"},
                                       {"every: 0", "probes.every"}});
    CHECK_NOTHROW(experiment(tiny, everything));
    auto const page = list("probes");
    for (Probe const& probe : Registry<Probe>::all()) {
      test::check_holds(page, {" " + probe.name + " ", probe.formula});
      CHECK(everything.find(probe.name) != std::string::npos);  // the other tests ask for all there are
    }
  }
}
