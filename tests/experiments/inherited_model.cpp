// A file that begins with weights (init.from) need not repeat their model.

#include "experiments/ablation/plan.hpp"
#include "experiments/train/session.hpp"
#include "experiments/train/train.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("inherited_model") {
  using namespace heed;
  using Words = std::vector<std::string>;

  namespace {

  std::string const data = "data: {kind: copy, length: 2, vocabulary: 4, validation: 4}\n";
  std::string const training = "train: {steps: 2, batch: 2, evaluate: {every: 2}}\n";

  struct Bench {
    Bench() {
      put("before", data +
                        "model: {kind: gpt, layers: 2, heads: 2, width: 16, context: 6, position: rotary, activation: relu, "
                        "attention: {align: ssmax, softcap: 4}, dropout: 0.1}\n" +
                        training);
      auto before = load("before");
      REQUIRE(train(before, true, false) == Exit::done);
    }
    void put(std::string const& name, std::string const& text) const {
      test::put(folder / (name + ".yaml"), "name: " + name + "\n" + text);
    }
    LoadedExperiment load(std::string const& name, Words const& more = {}) const {
      return load_experiment(folder / (name + ".yaml"), more, {.output = folder / "runs", .data = {}, .config_folder = {}});
    }
    /// The model of a file that begins with the weights, as YAML on one line.
    Yaml model(std::string const& text, Words const& more = {}) const {
      put("next", data + "init: {from: before}\n" + text + training);
      auto loaded = load("next", more);
      return *tree(loaded.settings).find("model");
    }
    test::Folder folder;
  };

  std::string at(Yaml const& model, std::string const& key) { return emit_line(*model.find(key)); }

  }  // namespace

  TEST_CASE_FIXTURE(Bench, "what the file leaves out is the weights', what it says is its own") {
    auto before = load("before");
    auto const whole = emit_line(*tree(before.settings).find("model"));
    for (std::string const same : {"", "model: gpt\n", "model: {kind: gpt}\n", "model: {}\n", "model: {width: 16}\n"})
      CHECK(emit_line(model(same)) == whole);
    auto const changed = model("model: {attention: {softcap: 5}, dropout: 0}\n");
    CHECK(at(changed, "attention.softcap") == "5.0");
    CHECK(at(changed, "attention.align") == "ssmax");
    CHECK(at(changed, "dropout") == "0.0");
    CHECK(at(changed, "position.kind") == "rotary");
    CHECK(at(model("model: {attention: additive}\n"), "attention.align") == "softmax");
    CHECK(at(model("", {"model.attention.align=softmax"}), "attention.softcap") == "4.0");
    auto const linear = model("model: {attention: {linear: gla}}\n");
    CHECK(at(linear, "attention.align") == "softmax");  // another variant's keys are not mixed with softmax's
    CHECK(at(linear, "position.kind") == "rotary");
    if (test::has_room("recurrent")) CHECK(at(model("model: {kind: recurrent_lm, width: 4, context: 6}\n"), "width") == "4");
  }

  TEST_CASE_FIXTURE(Bench, "changes are named, those of the function and others") {
    put("next", data + "init: {from: before}\nmodel: {activation: gelu, dropout: 0.2}\n" + training);
    auto const loaded = load("next");
    Trainer const trainer(loaded, true);
    CHECK(trainer.start_remark() ==
          "the model is another function of these weights: model.activation is gelu, was relu; changed: "
          "model.dropout is 0.2, was 0.1");
    CHECK(trainer.unexpected_changes().size() == 1);
  }

  TEST_CASE_FIXTURE(Bench, "a run says its whole model; weights that are gone or say nothing are told") {
    put("next", data + "init: {from: before}\n" + training);
    std::string const output = (folder / "runs").string(), file = (folder / "next.yaml").string();
    test::check_holds(test::run_well({"check", file, "--output", output}).output, {"kind: rotary", "align: ssmax"});
    test::run_well({"run", file, "--output", output, "--quiet"});
    test::check_holds(test::get(folder / "runs/next/config.yaml"), {"kind: rotary", "softcap: 4.0"});
    test::check_holds(test::run_well({"run", file, "--output", output}).output, {"finished already"});
    std::filesystem::remove_all(folder / "runs/before");
    test::refuses({"check", file, "--output", output}, 2, {"next.yaml:3:14: init.from: ", "'model.kind' is missing", "before"});
  }

  TEST_CASE_FIXTURE(Bench, "an ablation over pre-trained weights, which its own file then holds") {
    test::put(folder / "a.yaml", "ablation: a\nbase: {name: n, " + data.substr(0, data.size() - 1) +
                                     ", init: {from: before}, train: {steps: 2, batch: 2, evaluate: {every: 2}}}\nvary: "
                                     "{model.dropout: [0.1, 0.3]}\nseeds: 2\n");
    auto const ablation = load_ablation(folder / "a.yaml", {}, {.output = folder / "runs", .data = {}, .config_folder = {}});
    auto trial = trial_of(ablation, ablation.arms[1].name, ablation.arms[1].changes, 1);
    Yaml const model = *tree(trial.settings).find("model");
    CHECK(at(model, "position.kind") == "rotary");
    CHECK(at(model, "dropout") == "0.3");
    CHECK(ablation.resolved.find("softcap: 4.0") != std::string::npos);
    test::run_well({"run", folder / "a.yaml", "--output", folder / "runs", "--quiet"});
    CHECK(test::summary_of(folder / "runs/a")["arms"].size() == 2);
  }

  TEST_CASE("a GPT-2's folder gives its model") {
    Bench const bench;
    bench.put("plain", data + "model: {kind: gpt, layers: 1, heads: 2, width: 8, context: 6, position: learned}\n" + training);
    auto plain = bench.load("plain");
    REQUIRE(train(plain, true, false) == Exit::done);
    std::string const gpt2 = (bench.folder / "gpt2").string();
    test::run_well({"export", bench.folder / "runs/plain", "--format", "huggingface", gpt2});
    auto const model = bench.model("", {"init.from=" + gpt2});
    CHECK(at(model, "layers") == "1");
    CHECK(at(model, "width") == "8");
    CHECK(at(model, "position.kind") == "learned");
  }
}
