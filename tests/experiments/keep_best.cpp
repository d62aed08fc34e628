#include "experiments/folder/record.hpp"
#include "experiments/train/experiment.hpp"
#include "nn/files/checkpoint.hpp"
#include "nn/files/sha256.hpp"
#include "tests/experiments/evaluated.hpp"
#include "tests/experiments/runs.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/small_ablation.hpp"
#include "tests/experiments/trace.hpp"

// A run that keeps its best weights, ends early, and freezes and unfreezes parameters on the way.

using namespace heed;
using doctest::Approx;
namespace fs = std::filesystem;

namespace {

#ifndef NDEBUG
constexpr int kills = 2;
#else
constexpr int kills = 8;
#endif

constexpr char const* best_config = R"(
name: tiny
seed: 3
data: {kind: grammar, validation: 16, ngram_sentences: 50}
model: {kind: gpt, layers: 2, heads: 2, width: 32, context: 32, dropout: 0.1}
train: {steps: 100, batch: 4, schedule: {kind: constant}, clip: 1.0, ema: 0.9, evaluate: {every: 5}, checkpoint: {every: 10},
  keep: best, stop: {patience: 6, least: 0.5},
  optimizer: {kind: adamw, lr: 2.0e-2, layer_decay: 0.8, groups: [
    {match: "position_embedding.*", frozen: true},
    {match: "blocks.0.*", frozen: true, unfreeze: 25},
    {match: "*.mlp.*", lr: 1.0e-2, weight_decay: 0.2}]}}
)";

using Arguments = std::vector<std::string>;

struct Runs : test::ProgramRun {
  Runs() : ProgramRun(best_config, {"--threads", "2"}) {}
  /// The loss that `heed evaluate` finds, in full.
  double evaluated(Arguments const& more = {}) const { return test::loss_of(test::evaluated(folder, run, more)); }
};

/// The run of the configuration, made once.
Runs const& finished() {
  static Runs const once;
  static bool const trained = (once.train(), true);
  static_cast<void>(trained);
  return once;
}

/// A copy of it, to be changed.
struct FinishedRun : Runs {
  FinishedRun() { fs::copy(finished().output, output, fs::copy_options::recursive); }
};

std::vector<std::pair<Index, double>> losses(fs::path const& run) { return read_history(run).at("validation.loss"); }

std::pair<Index, double> lowest(fs::path const& run) {
  auto const all = losses(run);
  return *std::ranges::min_element(all, {}, &std::pair<Index, double>::second);
}

}  // namespace

TEST_SUITE("keep_best") {
  TEST_CASE("a run that keeps its best weights tells which, and its summary has their values") {
    auto const summary = finished().summary();
    auto const [step, value] = lowest(finished().run);
    auto const evaluations = losses(finished().run).size();
    CHECK(summary["best"] == test::Json{{"step", step}, {"value", value}, {"metric", "validation.loss"}, {"evaluations", evaluations}});
    CHECK(summary["validation.loss"] == value);
    CHECK(kept_step(finished().run) == step);
    CHECK(load_best(finished().run).step == step);
    CHECK(load_checkpoint(finished().run).step == summary["steps"]);
    CHECK(load_best(finished().run).metadata.at("selected_by") == "validation.loss");
  }

  TEST_CASE("early stopping ends a run as its rows say, finished, and with a checkpoint of that step") {
    auto const summary = finished().summary();
    Index const stopped = summary["stopped_at"];
    CHECK(stopped < 100);
    CHECK(summary["steps"] == stopped);
    double reference = losses(finished().run).front().second;
    Index without = 0, expected = -1;
    for (auto const& [step, loss] : losses(finished().run)) {
      if (step == 0) continue;
      bool const better = reference - loss >= 0.5;
      if (better) reference = loss;
      without = better ? 0 : without + 1;
      if (without == 6 && expected < 0) expected = step;
    }
    CHECK(stopped == expected);
    CHECK(losses(finished().run).back().first == stopped);
    CHECK(std::string(summary["stopped_because"]).starts_with("validation.loss has not improved by 0.5 or more on the "));
    auto const again = test::run_heed(finished().command());
    CHECK(again.code == 0);
    CHECK(again.output.find(fmt::format("finished already, {} steps", stopped)) != std::string::npos);
  }

  TEST_CASE_FIXTURE(FinishedRun, "evaluate, sample, inspect and init.from take the best weights, and say so; the last ones if asked") {
    auto const best = open_run(run), last = open_run(run, "last"), file = open_run(run / "best.safetensors");
    CHECK(best.step == lowest(run).first);
    CHECK(best.weights == "best");
    CHECK(file.step == best.step);
    CHECK(last.step == summary()["steps"]);
    CHECK(evaluated() == Approx(lowest(run).second).epsilon(1e-5));
    CHECK(evaluated({"--weights", "best"}) == evaluated());
    CHECK(evaluated({"--weights", "last"}) == Approx(losses(run).back().second).epsilon(1e-5));
    CHECK(evaluated({"--weights", "average"}) == Approx(read_history(run).at("validation.ema.loss").back().second).epsilon(1e-5));
    auto const said = fmt::format("weights of step {}, the best by validation.loss", best.step);
    test::check_holds(test::run_heed({"sample", run.string(), "--count", "1"}).errors, {said});
    CHECK(test::run_heed({"sample", run.string(), "--count", "1", "--weights", "last"}).errors == "");
    test::check_holds(test::run_heed({"inspect", run.string(), "--text", "the dogs that"}).output, {said});
    test::check_holds(test::run_heed({"evaluate", run.string()}).output,
                      {fmt::format("step {}, best weights", best.step), "the weights were selected by validation.loss on these data"});
    test::put(folder / "next.yaml",
              "name: next\ndata: {kind: grammar, validation: 16, ngram_sentences: 50}\n"
              "model: {kind: gpt, layers: 2, heads: 2, width: 32, context: 32}\ninit: {from: tiny}\ntrain: {steps: 0}\n");
    auto const started = test::run_well({"run", (folder / "next.yaml").string(), "--output", output.string(), "--data", output.string()});
    CHECK(started.errors.find("the run's best weights") != std::string::npos);
    auto const init = test::summary_of(output / "next")["init"];
    CHECK(init["sha256"] == sha256_of_file(run / "best.safetensors"));
    auto const next = open_run(output / "next");
    CHECK(next.parameters->find("norm.weight")->to_vector() == best.parameters->find("norm.weight")->to_vector());
  }

  TEST_CASE("what is frozen keeps the bits it started with; what is unfrozen does not; neither moves before") {
    Runs const start, early;
    start.train({"train.steps=0", "train.stop=null"});
    early.train({"train.steps=25", "train.stop=null"});
    auto const value = [](Runs const& runs, std::string const& name, char const* weights) {
      return open_run(runs.run, weights).parameters->find(name)->to_vector();
    };
    for (char const* const weights : {"last", "average", "best"})
      CHECK(value(start, "position_embedding.weight", "last") == value(finished(), "position_embedding.weight", weights));
    std::string const query = "blocks.0.attention.query.weight", up = "blocks.0.mlp.up.weight";
    CHECK(value(start, query, "last") == value(early, query, "last"));
    CHECK(value(start, query, "last") != value(finished(), query, "last"));
    CHECK(value(start, up, "last") != value(early, up, "last"));
    for (auto const& state : load_checkpoint(finished().run).state)
      CHECK((state.first.find("position_embedding") == state.first.npos || state.first.starts_with("ema.")));
  }

  TEST_CASE("killed at random moments and run again to the end: the same rows and files, the best weights too") {
    auto const expected = test::trace_of(finished().run);
    Runs const timed;
    double const seconds = test::seconds_of([&] { timed.train(); });
    test::check_equal(test::trace_of(timed.run), expected);
    for (int i = 0; i < kills; ++i) {
      Runs const runs;
      double const moment = test::random_share() * seconds;
      CAPTURE(moment);
      test::kill_after(moment, runs.command({"--quiet"}));
      runs.train({"--quiet"});
      test::check_equal(test::trace_of(runs.run), expected);
      for (char const* const key : {"best", "stopped_because"}) CHECK(runs.summary()[key] == finished().summary()[key]);
    }
  }

  TEST_CASE("killed while the best weights are written, or just after, and interrupted before the end") {
    auto const expected = test::trace_of(finished().run);
    for (std::string const name : {".best.safetensors.part", "best.safetensors", "state-20.safetensors"}) {
      CAPTURE(name);
      Runs const runs;
      test::end_at(runs.run / name, runs.command({"--quiet"}), name == "state-20.safetensors" ? SIGINT : SIGKILL);
      runs.train({"--quiet"});
      test::check_equal(test::trace_of(runs.run), expected);
    }
  }

  TEST_CASE_FIXTURE(FinishedRun, "more steps for a run that has stopped: it stops there again") {
    train({"train.steps=150"});
    CHECK(summary()["stopped_at"] == finished().summary()["stopped_at"]);
    CHECK(summary()["stopped_of"] == 150);
    CHECK(test::get(run / "best.safetensors") != "");
    CHECK(test::rows_of(run) == test::rows_of(finished().run));
  }

  TEST_CASE_FIXTURE(Runs, "more steps for a run whose best evaluation was at an end that a longer run does not evaluate at") {
    std::string const never_stops = "train.stop=null";
    train({"train.steps=20", never_stops});
    train({"train.steps=30", never_stops});  // at 20 as well
    Runs const whole;
    whole.train({"train.steps=30", never_stops});
    test::check_equal(test::trace_of(run), test::trace_of(whole.run));
    Runs const off;
    off.train({"train.steps=13", never_stops});
    REQUIRE(load_best(off.run).step == 13);
    auto const measured = losses(off.run).back();
    REQUIRE(measured.first == 13);
    off.train({"train.steps=14", never_stops});  // 13 is no evaluation of this one, but may stay the best
    CHECK(std::ranges::count(losses(off.run), measured) == 1);
    CHECK(load_best(off.run).step >= 13);
  }

  TEST_CASE_FIXTURE(FinishedRun, "best weights that are missing, damaged or of another step are told in one line") {
    fs::remove(run / "summary.json");
    auto const best = test::get(run / "best.safetensors");
    test::put(run / "best.safetensors", test::flipped(best, best.size() / 2));
    test::refuses(command(), 3, {"best.safetensors"});
    test::refuses({"evaluate", run.string()}, 3, {"best.safetensors"});
    fs::remove(run / "best.safetensors");
    if (lowest(run).first < load_checkpoint(run).step)
      test::refuses(command(), 3, {"best.safetensors: is missing, but by metrics.jsonl the best evaluation is that of step"});
  }

  TEST_CASE_FIXTURE(FinishedRun, "other groups, another metric or another patience do not go on with the run") {
    test::refuses(command({"train.optimizer.groups.0.match=norm.*"}), 2, {"what differs: train.optimizer.groups ("});
    test::refuses(command({"train.select.metric=validation.ema.loss"}), 2, {"what differs: train.select.metric ("});
    test::refuses(command({"train.stop.patience=7"}), 2, {"what differs: train.stop.patience ("});
  }

  TEST_CASE_FIXTURE(Runs, "what cannot be chosen by is refused before anything is written, with its place and the nearest name") {
    auto const refuses = [&](Arguments const& arguments, Arguments const& words) {
      test::refuses(command(arguments), 2, words);
      CHECK(!fs::exists(run));
    };
    refuses({"train.select.metric=validation.los"},
            {"train.select.metric: 'validation.los' is not a metric", "did you mean 'validation.loss'?"});
    for (std::string const key : {"train.select.metric", "train.stop.metric"})
      refuses({key + "=validation.bleu"}, {key + ": an evaluation here gives no validation.bleu"});
    refuses({"train.optimizer.groups.0.match=positoin_embedding.*"},
            {"train.optimizer.groups.0.match: 'positoin_embedding.*' matches no parameter; did you mean 'position_embedding.*'?"});
    refuses({"train.keep=last", "train.select.metric=validation.accuracy"}, {"train.select.metric: needs train.keep: best"});
    refuses({"train.ema=none", "train.select.metric=validation.ema.loss"}, {"train.select.metric: validation.ema.loss needs train.ema"});
    test::refuses({"evaluate", finished().run.string(), "--weights", "bets"}, 2, {"did you mean 'best'?"});
  }

  TEST_CASE_FIXTURE(Runs, "weights chosen by a metric of the running average are the average") {
    train({"train.select.metric=validation.ema.accuracy"});
    auto const history = read_history(run);
    auto const& all = history.at("validation.ema.accuracy");
    auto const best = *std::ranges::max_element(all, {}, &std::pair<Index, double>::second);
    CHECK(summary()["best"]["step"] == best.first);
    double const loss = std::ranges::find(history.at("validation.ema.loss"), best.first, &std::pair<Index, double>::first)->second;
    CHECK(evaluated() == Approx(loss).epsilon(1e-5));
  }

  TEST_CASE("an ablation's trials stop on their own, and count with the weights that they keep") {
    test::SmallAblation const ablation;
    test::put(ablation.folder / "base.yaml", std::string(test::small_base) +
                                                 "  optimizer: {kind: adamw, lr: 3.0e-2}\n  keep: best\n"
                                                 "  stop: {patience: 2, least: 0.01}\n");
    test::put(ablation.folder / "small.yaml",
              std::string(test::small_ablation) + "set: {train.steps: 300, train.evaluate.every: 5}\nmetric: validation.loss\n");
    auto const made = test::run_well(ablation.command());
    auto const summary = ablation.summary();
    CHECK(summary["at"] == "kept");
    for (auto const& arm : summary["arms"]) {
      std::size_t trial = 0;
      for (auto const& [seed, value] : arm["values"].items()) {
        fs::path const folder = ablation.small / std::string(arm["folders"][trial++]);
        CHECK(value == lowest(folder).second);
      }
    }
    test::check_holds(summary.dump(), {"stopped early (train.stop)", "selected on the data on which it is measured, it is optimistic"});
    test::check_holds(made.output, {"(kept, lower is better)"});
  }
}
