#include "experiments/train/train.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/files/sha256.hpp"
#include "tests/engine.hpp"
#include "tests/experiments/runs.hpp"
#include "tests/experiments/trace.hpp"
#include "tests/refusal.hpp"

using namespace heed;
using json = test::Json;

namespace {

constexpr char const* run_config = R"(
name: tiny
seed: 3
data: {kind: grammar, validation: 12, ngram_sentences: 50}
model: {kind: gpt, layers: 1, heads: 2, width: 16, context: 32}
train: {steps: 10, batch: 3, optimizer: {kind: adamw, lr: 1.0e-3}, evaluate: {every: 4}, checkpoint: {every: 4}}
)";

struct Runs {
  test::Folder folder;
  Runs() { test::put(folder / "tiny.yaml", run_config); }
  RunOptions options(std::vector<std::string> overrides = {}) const { return test::quiet_run(folder, "tiny.yaml", std::move(overrides)); }
  Exit operator()(std::vector<std::string> overrides = {}) const { return run(options(std::move(overrides))); }
  std::filesystem::path of(std::string const& name = "tiny") const { return folder / "runs" / name; }
  std::vector<json> rows(std::string const& name = "tiny") const { return test::json_rows(of(name) / "metrics.jsonl"); }
  /// The rows of a run of this name, which must end well.
  std::vector<json> made(std::string const& name, std::vector<std::string> const& overrides = {}) const {
    REQUIRE((*this)(test::joined(overrides, {"name=" + name})) == Exit::done);
    return rows(name);
  }
};

std::vector<Index> steps_with(std::vector<json> const& rows, std::string const& key) {
  std::vector<Index> steps;
  for (auto const& row : rows)
    if (row.contains(key)) steps.push_back(row["step"]);
  return steps;
}

using Steps = std::vector<Index>;

struct InRuns {
  Runs const runs;
};

}  // namespace

TEST_SUITE("run") {
  TEST_CASE_FIXTURE(InRuns, "a run leaves configuration, rows, checkpoint and summary") {
    REQUIRE(runs() == Exit::done);
    auto const folder = runs.of();
    auto const rows = runs.rows();
    CHECK(steps_with(rows, "step") == Steps{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    for (auto const* const key : {"loss", "grad_norm", "lr", "time.seconds", "time.tokens_per_second", "memory.peak"})
      CHECK(steps_with(rows, key) == Steps{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    CHECK(steps_with(rows, "validation.loss") == Steps{0, 4, 8, 10});  // and always after the last update

    Experiment settings;
    fill(load(folder / "config.yaml"), settings);
    CHECK(emit(settings) == test::get(folder / "config.yaml"));
    CHECK(load_checkpoint(folder).step == 10);
    CHECK(open_run(folder).step == 10);

    auto const summary = test::summary_of(folder);
    CHECK(summary["finished"] == true);
    CHECK(summary["steps"] == 10);
    CHECK(summary["validation.loss"] == rows.back()["validation.loss"]);
    CHECK(summary["configuration"] == test::get(folder / "config.yaml"));
    CHECK(summary["data"]["sha256"].get<std::string>().size() == 64);
    for (auto const* const key :
         {"name", "parameters", "yardsticks", "time.seconds", "time.tokens_per_second", "memory.peak", "environment"})
      CHECK_MESSAGE(summary.contains(key), key);
    for (auto const* const key : {"revision", "compiler", "processor", "blas", "threads"})
      CHECK_MESSAGE(summary["environment"].contains(key), key);
  }

  TEST_CASE_FIXTURE(InRuns, "memory.peak is that of training, whatever evaluation and probes need") {
    auto const peak = [&](std::string const& name, std::vector<std::string> const& overrides) {
      runs.made(name, test::joined(overrides, {"model.attention=additive"}));
      return test::summary_of(runs.of(name))["memory.peak"].get<double>();
    };
    double const plain = peak("plain", {});
    CHECK(plain > 1e5);
    CHECK(peak("probed", {"probes={every: 2, rows: 12, attention: [entropy]}"}) == doctest::Approx(plain).epsilon(0.05));
  }

  TEST_CASE_FIXTURE(InRuns, "the precision of products: other bits, the same every time, and named in the summary") {
    WithProducts const restored(products());
    auto const loss = [&](std::string const& name, std::vector<std::string> const& overrides) {
      return runs.made(name, test::joined(overrides, {"model.width=64"})).back()["validation.loss"].get<double>();
    };
    double const plain = loss("plain", {});
    CHECK(loss("named", {"train.precision=float32"}) == plain);
    double const rounded = loss("bfloat16", {"train.precision=bfloat16"});
    CHECK(rounded != plain);
    CHECK(rounded == doctest::Approx(plain).epsilon(1e-2));
    CHECK(loss("again", {"train.precision=bfloat16"}) == rounded);
    auto const said = [&](std::string const& name) { return test::summary_of(runs.of(name))["environment"]["blas"].get<std::string>(); };
    CHECK(said("plain").ends_with(", factors in float32"));
    CHECK(said("bfloat16").find(", factors in bfloat16") != std::string::npos);
    CHECK(loss("plain-again", {}) == plain);
    for (std::string const dtype : {"float64", "float32"}) {
      CHECK_THROWS_WITH_AS(runs({"dtype=" + dtype, std::string("train.precision=") + (dtype == "float64" ? "bfloat16" : "float64")}),
                           doctest::Contains(("cannot be combined with dtype " + dtype).c_str()), ConfigError);
    }
  }

  TEST_CASE_FIXTURE(InRuns, "the same metrics on any number of threads, in every precision") {
    WithProducts const restored(products());
    Threads const before(threads());
    using Overrides = std::vector<std::string>;
    std::vector<Overrides> const kinds{
        {},
        {"dtype=float64"},
        {"train.precision=bfloat16"},
        {"model.attention=local-p", "model.norm.kind=rms", "model.activation=swiglu"},
        {"model.attention=additive", "model.position=t5", "model.dropout=0.1", "train.recompute=true"},
    };
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      CAPTURE(kind);
      std::vector<std::vector<json>> seen;
      for (int const count : {1, 2, 3, 5}) {
        set_threads(count);
        auto const overrides = test::joined(kinds[kind], {"model.width=72", "train.batch=7", "train.steps=4"});
        auto rows = runs.made(fmt::format("kind{}-threads{}", kind, count), overrides);
        for (json& row : rows)
          for (auto const* const key : {"time.seconds", "time.tokens_per_second", "memory.peak"}) row.erase(key);
        seen.push_back(rows);
        CHECK(rows == seen.front());
      }
    }
  }

  TEST_CASE_FIXTURE(InRuns, "no steps: the initial weights, evaluated") {
    auto const rows = runs.made("tiny", {"train.steps=0"});
    REQUIRE(rows.size() == 1);
    CHECK(rows[0]["step"] == 0);
    CHECK(rows[0].contains("validation.loss"));
    CHECK(load_checkpoint(runs.of()).step == 0);
    CHECK(test::summary_of(runs.of())["steps"] == 0);
    REQUIRE(runs() == Exit::done);  // and on from there
    CHECK(runs.rows().size() == 11);
    CHECK(runs.rows()[0]["validation.loss"] == rows[0]["validation.loss"]);
  }

  TEST_CASE_FIXTURE(InRuns, "rows now and then: those asked for, and those of evaluations") {
    CHECK(steps_with(runs.made("tiny", {"train.log.every=3"}), "step") == Steps{0, 3, 4, 6, 8, 9, 10});
  }

  TEST_CASE_FIXTURE(InRuns, "a type of fewer bits is no dtype: the message names the key that has it") {
    for (char const* type : {"float16", "bfloat16", "half", "fp16", "bf16"})
      CHECK_THROWS_WITH_AS(runs({std::string("dtype=") + type}), doctest::Contains("train.precision: bfloat16"), ConfigError);
    for (char const* type : {"float16", "half", "bf16"})
      CHECK_THROWS_WITH_AS(runs({std::string("train.precision=") + type}), doctest::Contains("the only type of fewer bits is bfloat16"),
                           ConfigError);
    for (char const* key : {"device=cuda", "gpu=true", "train.device=cuda"})
      CHECK_THROWS_WITH_AS(runs({key}), doctest::Contains("; heed runs on CPUs only"), ConfigError);
    CHECK_THROWS_WITH_AS(runs({"dtype=flaot32"}), doctest::Contains("did you mean 'float32'?"), ConfigError);
  }

  TEST_CASE_FIXTURE(InRuns, "weights that do not fit: three messages, and the number of the others") {
    REQUIRE(runs({"name=first"}) == Exit::done);
    std::string const message = test::refusal<FileError>([&] {
      runs({"name=second", "init.from=runs/first/checkpoint.safetensors", "model.width=32", "model.layers=2"});
    });
    INFO(message);
    CHECK(std::ranges::count(message, ';') == 3);
    CHECK(message.find("; and ") != std::string::npos);
    CHECK(message.ends_with(" more"));
  }

  TEST_CASE_FIXTURE(InRuns, "averaged weights are evaluated beside the others, which they do not touch") {
    auto const with = runs.made("with", {"train.ema=0.5"}), without = runs.made("without");
    CHECK(steps_with(with, "validation.ema.loss") == Steps{0, 4, 8, 10});
    CHECK(with[0]["validation.ema.loss"] == with[0]["validation.loss"]);
    CHECK(with[10]["validation.ema.loss"] != with[10]["validation.loss"]);
    for (std::size_t i = 0; i < 10; ++i) CHECK(with[i]["loss"] == without[i]["loss"]);
    CHECK(with[10]["validation.loss"] == without[10]["validation.loss"]);
  }

  TEST_CASE_FIXTURE(InRuns, "accumulated micro-batches are one batch, and recomputation changes no value") {
    auto const whole = runs.made("whole", {"train.batch=6", "dtype=float64"});
    auto const parts = runs.made("parts", {"train.accumulate=2", "dtype=float64"});
    auto const again = runs.made("again", {"train.accumulate=2", "train.recompute=true", "dtype=float64"});
    for (std::size_t i = 0; i < 10; ++i)
      for (auto const* const key : {"loss", "grad_norm"}) {
        CHECK(parts[i][key].get<double>() == doctest::Approx(whole[i][key].get<double>()).epsilon(1e-10));
        CHECK(again[i][key] == parts[i][key]);
      }
  }

  TEST_CASE_FIXTURE(InRuns, "init.from: the weights of another run, whatever their type") {
    double const last = runs.made("first", {"dtype=float64"}).back()["validation.loss"];
    double const second = runs.made("second", {"init.from=runs/first/checkpoint.safetensors"})[0]["validation.loss"];
    CHECK(second == doctest::Approx(last).epsilon(1e-5));
    auto const summary = test::summary_of(runs.of("second"));
    auto const first = runs.of("first") / "checkpoint.safetensors";
    CHECK(summary["init"]["file"] == first.string());
    CHECK(summary["init"]["sha256"] == sha256_of_file(first));
    // The path is relative to tiny.yaml; the run's own config.yaml stands elsewhere.
    auto options = runs.options({"name=third"});
    options.config = runs.of("second") / "config.yaml";
    CHECK(run(options) == Exit::done);
  }

  TEST_CASE_FIXTURE(InRuns, "a training that fails says at which step and where, and leaves the last good checkpoint") {
    std::vector<std::string> const wild{"train.optimizer.lr=1e18", "train.checkpoint.every=1", "train.steps=50"};
    CHECK_THROWS_WITH_AS(runs(wild), doctest::Contains("step "), TrainingError);
    if (has_checkpoint(runs.of()))
      for (auto const& [name, tensor] : load_checkpoint(runs.of()).parameters)
        for (double const value : tensor.to_vector()) REQUIRE(std::isfinite(value));
    CHECK(!std::filesystem::exists(runs.of() / "summary.json"));
    CHECK_THROWS_AS(runs(wild), TrainingError);  // and again
  }

  TEST_CASE_FIXTURE(InRuns, "a last update that ruins the weights is no success") {
    CHECK_THROWS_WITH_AS(runs({"train.steps=1", "train.optimizer={kind: sgd, lr: 1e39}", "train.schedule=constant"}),
                         doctest::Contains("step 0: after its update tensor 'token_embedding.weight' holds"), TrainingError);
    CHECK(!has_checkpoint(runs.of()));
  }

  TEST_CASE_FIXTURE(InRuns, "a loss that training has made much larger is said in summary and page") {
    REQUIRE(runs({"train.optimizer.lr=30", "train.schedule=constant"}) == Exit::done);
    auto const rows = runs.rows();
    REQUIRE(rows[rows.size() - 2]["loss"].get<double>() > 2 * rows.front()["loss"].get<double>());  // the last is an evaluation's
    std::string const words = "far above its first one of ";
    CHECK(test::summary_of(runs.of())["grown"].get<std::string>().find(words) != std::string::npos);
    CHECK(test::get(runs.of() / "report.html").find(words) != std::string::npos);
    REQUIRE(runs({"name=tame"}) == Exit::done);
    CHECK(!test::summary_of(runs.of("tame")).contains("grown"));
  }

  TEST_CASE_FIXTURE(InRuns, "keys may stand in a name") {
    REQUIRE(runs({"name=set/w${model.width}-s${seed}", "train.steps=1"}) == Exit::done);
    CHECK(std::filesystem::exists(runs.of("set/w16-s3") / "summary.json"));
  }

  TEST_CASE_FIXTURE(InRuns, "check trains nothing and leaves nothing") {
    CHECK(check(runs.options()) == Exit::done);
    CHECK(!std::filesystem::exists(runs.folder / "runs"));
    CHECK_THROWS_AS(check(runs.options({"model.context=16"})), ConfigError);  // the data need 32
    CHECK_THROWS_AS(check(runs.options({"data.path=nowhere.yaml"})), FileError);
  }
}
