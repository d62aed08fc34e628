#include "experiments/ablation/arms.hpp"

#include "experiments/config/table.hpp"
#include "tests/experiments/ablation_file.hpp"

// What an ablation's file means: one configuration is one arm, values are found however they are written, and the file can hold its base.

TEST_SUITE("arms") {
  using namespace heed;
  using Bench = test::AblationFile;
  using test::names, test::Words;

  TEST_CASE_FIXTURE(Bench, "one configuration is one arm, however it is written; both places are told") {
    for (char const* said : {"a.yaml:3:36: the arms '0.001' and '1e-3' are one configuration (the other: ", "a.yaml:3:29)"})
      refuses("vary: {train.optimizer.lr: [0.001, 1e-3]}", said, {"train.optimizer.kind=adamw"});
    refuses("vary: {model.attention: [scaled, dot, {score: scaled_dot}]}",
            "the arms 'scaled' and 'scaled_dot' are one configuration (the other: ");
    refuses("vary: {model.attention: [scaled, scaled-dot]}", "the arms 'scaled' and 'scaled-dot' are one configuration");
    refuses("vary: {model.attention: [dot, {score: scaled_dot, scale: none}, {scale: none, score: scaled_dot}]}", "are one configuration");
    refuses("vary: {model.bias: [true, yes]}", "the arms 'bias=true' and 'bias=yes' are one configuration");
    refuses("vary: {model.attention: [scaled, dot]}\nadd: {as-is: {}}",
            "a.yaml:4:7: the arms 'scaled' and 'as-is' are one configuration (the other: ");
    refuses("add: {as-is: {}, same: {train.steps: 4}}", "a.yaml:3:18: the arms 'as-is' and 'same' are one configuration");
    refuses("vary: {model.heads: [1, 2], train.clip: [1, 1.0]}", "a.yaml:3:45: ");
    refuses("together: {model.heads: [1, 1], train.batch: [2, 2]}", "two arms would both be called");
    refuses("vary: {model.heads: [1, 1]}", "a.yaml:3:25: two arms would both be called '1' (the other: ");
    refuses("vary: {model.heads: [1, 2]}\nadd: {'1': {train.steps: 5}}", "a.yaml:4:7: two arms would both be called '1'");
    CHECK(load("vary: {model.attention: [scaled, dot]}\nadd: {longer: {train.steps: 5}}").arms.size() == 3);

    std::string const vary = "vary: {model.heads: [1, 2]}\n";
    refuses(vary + "tune: {grid: {train.optimizer.lr: [0.1, 1e-1]}}",
            "a.yaml:4:41: tune: the points '0.1' and '1e-1' are one configuration (the other: ", {"train.optimizer.kind=sgd"});
    refuses(vary + "tune: {grid: {train.batch: [2, 2]}}", "tune: the points '2' and '2' are one configuration");
    refuses("vary: {train.batch: [2, 4]}\ntune: {grid: {train.batch: [2, 8]}}",
            "the arms '2' and '4' are one configuration at the point '2' of tune's grid, which sets what they differ in");
  }

  TEST_CASE_FIXTURE(Bench, "baseline and skip find values by their meaning") {
    auto const baseline = [&](std::string const& vary, std::string const& value) {
      return load("vary: {" + vary + "}\nbaseline: " + value, {"train.optimizer.kind=adamw"}).baseline;
    };
    CHECK(baseline("train.optimizer.lr: [1.0e-2, 1e-3]", "{train.optimizer.lr: 0.001}") == 1);
    CHECK(baseline("train.optimizer.lr: [1.0e-2, 1e-3]", "0.001") == 1);
    CHECK(baseline("train.optimizer.lr: [1.0e-2, 1e-3]", "1e-3") == 1);
    CHECK(baseline("model.attention: [dot, scaled]", "scaled-dot") == 1);
    CHECK(baseline("model.attention: [dot, scaled]", "{model.attention: {score: scaled_dot}}") == 1);
    CHECK(baseline("model.attention: [dot, scaled]", "{model.attention.score: dot}") == 0);
    CHECK(baseline("train.clip: [1, none], model.heads: [1, 2]", "{model.heads: 2, train.clip: 1.0}") == 1);
    CHECK(baseline("model.bias: [no, yes]", "{model.bias: true}") == 1);
    refuses("vary: {model.attention: [dot, scaled]}\nbaseline: {train.steps: 4}", "fits 0 arms");  // no arm sets it
    refuses("vary: {model.attention: [dot, scaled]}\nbaseline: {model.attention: sclaed}", "fits 0 arms");
    refuses("vary: {train.clip: [1, 2], model.heads: [1, 2]}\nbaseline: {train.clip: 1.0}", "fits 2 arms");

    auto const arms = load("vary: {train.clip: [1, 2], model.heads: [1, 2]}\nskip: [{train.clip: 1.0, model.heads: 2}]").arms;
    CHECK(names(arms) == Words{"clip=1 · heads=1", "clip=2 · heads=1", "clip=2 · heads=2"});
    refuses("vary: {model.heads: [1, 2]}\nskip: [{train.steps: 4}]", "skip: no arm has {train.steps: 4}");
  }

  TEST_CASE_FIXTURE(Bench, "a base may stand in the ablation itself, and the saved file holds it") {
    auto const inside = load("vary: {model.heads: [1, 2]}");
    auto const text = "ablation: a\nvary: {model.heads: [1, 2]}\nbase:\n" + indented(test::plain_base);
    test::put(folder / "b.yaml", text);
    auto const again = load_ablation(folder / "b.yaml", {}, inside.folders);
    CHECK(trial_of(again, "x", again.arms[1].changes, 1).settings.name == trial_of(inside, "x", inside.arms[1].changes, 1).settings.name);
    CHECK(again.folders.config_folder == inside.folders.config_folder);

    test::Folder const elsewhere;
    test::put(elsewhere / "saved.yaml", inside.resolved);
    test::put(folder / "base.yaml", "nonsense: 1");
    auto const saved = load_ablation(elsewhere / "saved.yaml", {}, inside.folders);
    CHECK(saved.resolved == inside.resolved);
    CHECK(saved.folders.config_folder == inside.folders.config_folder);
    CHECK(trial_of(saved, "x", saved.arms[1].changes, 1).settings.name == trial_of(inside, "x", inside.arms[1].changes, 1).settings.name);
    CHECK(load_ablation(elsewhere / "saved.yaml", {"train.steps=9"}, inside.folders).base.root.find("train.steps")->text == "9");
    CHECK(load_ablation(elsewhere / "saved.yaml", {"base.train.steps=9"}, inside.folders).base.root.find("train.steps")->text == "9");

    test::put(folder / "base.yaml", test::plain_base);
    refuses("vary: {model.heads: [1, 2]}", "base: 'base.yaml' is a file, whose keys are changed without", {"base.train.steps=9"});
    test::put(elsewhere / "wrong.yaml", "ablation: a\nvary: {model.heads: [1, 2]}\nbase: {data: {kind: recall}, modle: 1}");
    CHECK_THROWS_WITH_AS(load_ablation(elsewhere / "wrong.yaml", {}, inside.folders), doctest::Contains("wrong.yaml:3:30"), ConfigError);
  }
}
