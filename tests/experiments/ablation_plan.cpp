#include <fmt/ranges.h>

#include "experiments/ablation/jobs.hpp"
#include "experiments/ablation/results.hpp"
#include "experiments/commands/list.hpp"
#include "experiments/config/scalar.hpp"
#include "nn/files/utf8.hpp"
#include "tests/experiments/ablation_file.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("ablation_plan") {
  using namespace heed;
  using Bench = test::AblationFile;
  using test::contains, test::names, test::Words;

  std::string const two = "vary: {model.heads: [1, 2]}\n";  // what is said beside it stands in line 4

  TEST_CASE_FIXTURE(Bench, "vary multiplies, together moves in step, add and skip do as they say") {
    CHECK(names(load("vary: {model.attention: [scaled, dot, {score: additive, align: local_m, window: 2}]}").arms) ==
          Words{"scaled", "dot", "additive-local_m-2"});
    auto const grid = load(
        "vary: {model.attention: [scaled, dot], model.heads: [1, 2]}\n"
        "together: {model.width: [8, 16], train.batch: [2, 4]}\n"
        "skip: [{model.attention: dot, model.heads: 2}]\n"
        "add: {wide: {model.width: 32}}\n"
        "baseline: wide\n");
    CHECK(names(grid.arms) == Words{"scaled · heads=1 · width=8 · batch=2", "scaled · heads=1 · width=16 · batch=4",
                                    "scaled · heads=2 · width=8 · batch=2", "scaled · heads=2 · width=16 · batch=4",
                                    "dot · heads=1 · width=8 · batch=2", "dot · heads=1 · width=16 · batch=4", "wide"});
    CHECK(grid.varied == Words{"model.attention", "model.heads", "model.width", "train.batch"});
    CHECK(grid.baseline == 6);
    CHECK(load("vary: {model.heads: [1, 2], model.width: [8, 16]}\nbaseline: {model.heads: 2, model.width: 16}").baseline == 3);
  }

  TEST_CASE_FIXTURE(Bench, "arms of two keys are named by their values, folders without spaces; what is on or off, by its key too") {
    CHECK(names(load("vary: {model.tie: [true, false]}\nbaseline: {model.tie: false}").arms) == Words{"tie=true", "tie=false"});
    CHECK(names(load("vary: {model.heads: [1, 2]}").arms) == Words{"1", "2"});
    auto const layers = load("vary: {model.layer_types: [[deltanet], [deltanet, deltanet, scaled], [scaled]]}\nset: {model.layers: 3}");
    CHECK(names(layers.arms) == Words{"deltanet", "deltanet×2+scaled", "scaled"});
    auto const grid =
        load("vary: {model.attention: [scaled, {align: sparsemax}], model.position: [none, rotary]}\nbaseline: scaled,rotary");
    CHECK(names(grid.arms) == Words{"scaled · position=none", "scaled · rotary", "sparsemax · position=none", "sparsemax · rotary"});
    CHECK(grid.baseline == 1);
    CHECK(trial_of(grid, grid.arms[3].name, grid.arms[3].changes, 1).settings.name.starts_with("sparsemax,rotary-seed1-"));
    auto const cut = load("vary: {init.from: [" + std::string(121, 'w') + "], model.position: [rotary, none]}").arms;
    CHECK(valid_utf8(cut[0].name) == cut[0].name);
  }

  TEST_CASE_FIXTURE(Bench, "a comparison says which arms have a short convolution, where there are recurrent layers or one that has it") {
    auto const said = [&](std::string const& types) {
      return convolutions_in_words(load("vary: {model.layer_types: [" + types + "]}\nset: {model.layers: 4}"));
    };
    CHECK(!said("[scaled], [dot]"));
    CHECK(said("[linear], [scaled]") == "no arm has a short convolution");
    CHECK(said("[deltanet], [{attention: {score: dot, convolution: 2}}]") ==
          "every arm has a short convolution on queries, keys and values");
    CHECK(said("[deltanet, deltanet, deltanet, scaled], [scaled]") ==
          "a short convolution on queries, keys and values: with it deltanet×3+scaled (in 3 of 4 layers); without it scaled");
  }

  TEST_CASE_FIXTURE(
      Bench, "set fixes keys of the base, as the command line does after it but for the ablation's own; the saved file is complete") {
    auto const ablation = load("set: {train.steps: 7, train.batch: 3}\n" + two, {"train.steps=9", "seeds=2", "metric=loss", "ablation=b"});
    CHECK(ablation.seeds.size() == 2);
    CHECK(ablation.settings.metric == "loss");
    CHECK(ablation.folder() == folder / "runs" / "b");
    auto const first = trial_of(ablation, "x", ablation.arms[1].changes, 2);
    auto const& trial = first.settings;
    CHECK(first.folders.output == ablation.folder());
    CHECK(trial.seed == 2);
    CHECK(trial.train.steps == 9);
    CHECK(trial.train.batch == 3);
    test::Folder const elsewhere;
    test::put(elsewhere / "saved.yaml", ablation.resolved);
    auto const again = load_ablation(elsewhere / "saved.yaml", {}, ablation.folders);
    CHECK(again.resolved == ablation.resolved);
    CHECK(trial_of(again, "x", again.arms[1].changes, 2).settings.name == trial.name);
    refuses("set: {train.stebs: 7}\nvary: {model.heads: [1, 2]}", "a.yaml:3:");
    refuses("set: 3\nvary: {model.heads: [1, 2]}", "a.yaml:3:6: set: wants keys of the base with their values, found '3'");
    refuses("set: {seed: 3}\nvary: {model.heads: [1, 2]}", "a.yaml:3:13: seed: the trials of an ablation take theirs");
  }

  TEST_CASE_FIXTURE(Bench, "every key of an ablation is told with an example that works") {
    std::set<std::string> told, known{"set", "vary", "together", "add", "skip", "seeds", "baseline", "tune", "published"};
    for (auto const& field : AblationSettings().fields()) known.insert(field.name);
    std::string vary;
    for (auto const& key : ablation_keys()) vary = key.name == "vary" ? key.example : vary;
    for (auto const& key : ablation_keys()) {
      told.insert(key.name);
      CAPTURE(key.name);
      CHECK(key.example.starts_with(key.name + ": "));
      if (key.name == "ablation" || key.name == "base") continue;
      CHECK(load((key.name == "vary" ? "" : vary + "\n") + key.example, {"train.optimizer.kind=adamw"}).arms.size() >= 3);
    }
    CHECK(told == known);
    auto const page = heed::list("ablation", "", true);
    INFO("experiments/ablation.md differs from `heed list ablation --markdown`");
    CHECK(test::get("experiments/ablation.md").find(page) != std::string::npos);
    contains(heed::list("ablation", "tune"), "tune: {grid: ");
  }

  TEST_CASE_FIXTURE(Bench, "published: what others have reported, one number or a curve, and where it lies beside what was measured") {
    auto const all = load(two + "published: {a paper: 28.1, a page's run: {1: 0.2, 4: 0.9}}").published;
    REQUIRE(all.size() == 2);
    CHECK(all[0].value == 28.1);
    CHECK(all[0].curve.empty());
    CHECK(all[1].name == "a page's run");
    CHECK(all[1].value == 0.9);
    CHECK(all[1].curve == std::vector<std::pair<Index, double>>{{1, 0.2}, {4, 0.9}});
    Estimate measured{.mean = 0.95, .interval = Interval{0.92, 0.98}};
    CHECK(beside_published(all[1], "soft", measured, 4) == "soft: 0.9500 [0.9200, 0.9800]; a page's run reports 0.9000, which lies below");
    CHECK(!beside_published(all[1], "soft", measured, 5));  // of another step
    measured.interval.reset();
    CHECK(beside_published(all[0], "soft", measured, 5) == "soft: 0.9500; a paper reports 28.1000");
    auto const wrong = [&](char const* value, char const* message) { refuses(two + "published: " + value, message); };
    wrong("28.1", "a.yaml:4:12: published: wants numbers by whose they are, {a paper: 28.1}, found '28.1'");
    wrong("{a: [1]}", "a.yaml:4:16: published: a: wants a number, or numbers by step {1000: 22.5}, found a list");
    wrong("{a: {last: 1}}", "published: a: 'last' is not a step");
    wrong("{a: {5: 1, 4: 2}}", "published: a: step 4 after step 5");
    wrong("{a: {}}", "published: a: has no numbers");
  }

  TEST_CASE_FIXTURE(Bench, "a file with an ablation's keys but not its name is told so; words of others find heed's") {
    test::put(folder / "b.yaml", "base: base.yaml\nvary: {model.heads: [1, 2]}\n");
    CHECK_THROWS_WITH_AS(is_ablation(heed::load(folder / "b.yaml")),
                         doctest::Contains("b.yaml:2:1: vary: is a key of an ablation, but the key 'ablation' (its name) is missing"),
                         ConfigError);
    refuses("zip: {model.heads: [1, 2]}", "unknown key 'zip'; did you mean 'together'?");
    refuses("vary: {model.position: [learned, rope]}", "found 'rope'; did you mean 'rotary'?");
    refuses("vary: {train.learning_rate: [1, 2]}", "unknown key 'train.learning_rate'; did you mean 'train.optimizer.lr'?");
    refuses("vary: {model.n_layer: [1, 2]}", "unknown key 'model.n_layer'; did you mean 'layers'?");
  }

  TEST_CASE_FIXTURE(Bench, "seeds are a number or a list; tuning has its own") {
    CHECK(load(two).seeds.size() == 6);
    CHECK(load(two + "seeds: 3").seeds == std::vector<Index>{1, 2, 3});
    CHECK(load(two + "seeds: [7, 5]").seeds == std::vector<Index>{7, 5});
    auto const tuned =
        load(two + "seeds: 3\ntune: {grid: {train.optimizer.lr: [0.1, 0.2], train.batch: [2, 4]}, seeds: 2}", {"train.optimizer.kind=sgd"});
    CHECK(tuned.tuning->points.size() == 4);
    CHECK(tuned.tuning->seeds == std::vector<Index>{10001, 10002});
    // More seeds for the comparison are none of tuning's, and change none of those.
    std::string const tune = "\ntune: {grid: {train.batch: [2, 4]}}";
    for (char const* seeds : {"seeds: 6", "seeds: 1000", "seeds: [7, 5000]"})
      CHECK(load(two + seeds + tune).tuning->seeds == tuned.tuning->seeds);
    CHECK(load(two + "seeds: [10001, 5]" + tune).tuning->seeds == std::vector<Index>{10002, 10003});
    refuses(two + "seeds: 3\ntune: {grid: {train.batch: [2]}, seeds: [3]}", "a.yaml:5:7: tune: seed 3 is also one");
  }

  TEST_CASE_FIXTURE(Bench, "tune draws points at random, the same in every call") {
    std::string const random = two + "tune: {random: {train.optimizer.lr: {log: [1.0e-4, 1.0e-2]}, train.batch: [2, 4]}, trials: 200}";
    auto const points = load(random).tuning->points;
    REQUIRE(points.size() == 200);
    CHECK(test::names(points) == test::names(load(random).tuning->points));
    std::size_t below = 0, two_rows = 0;
    for (auto const& point : points) {
      auto const rate = *parse_real(point.changes[0].value.text);
      CHECK(rate >= 1e-4);
      CHECK(rate <= 1e-2);
      below += rate < 1e-3 ? 1 : 0;
      two_rows += point.changes[1].value.text == "2" ? 1 : 0;
    }
    for (std::size_t const half : {below, two_rows}) CHECK((half > 75 && half < 125));  // of the rate on a logarithmic scale
    refuses(two + "tune: {random: {train.batch: [2, 4]}, trials: 3}", "tune: random has no 3 different points");
    refuses(two + "tune: {random: {train.batch: [2]}}", "tune: random wants `trials`");
    refuses(two + "tune: {random: {train.batch: [2]}, grid: {train.batch: [2]}, trials: 2}", "one of `grid` and `random`");
    refuses(two + "tune: {random: {train.optimizer.lr: {log: [0, 1]}}, trials: 2}", "train.optimizer.lr: wants {log: [a, b]}");
    refuses(two + "tune: {random: {train.optimizer.lr: 3}, trials: 2}", "train.optimizer.lr: wants {log: [a, b]}");
  }

  TEST_CASE_FIXTURE(Bench, "a trial's folder is named by what is measured, and by nothing else") {
    auto const name = [&](std::string const& text, std::vector<std::string> const& overrides = {}) {
      auto const ablation = load("vary: {model.attention: [scaled, dot]}\n" + text, overrides);
      return trial_of(ablation, ablation.arms[1].name, ablation.arms[1].changes, 1).settings.name;
    };
    auto const first = name("");
    CHECK(first.starts_with("dot-seed1-"));
    CHECK(first.size() == std::string("dot-seed1-").size() + 8);
    CHECK(name("seeds: 3\nmetric: loss", {"ablation=other"}) == first);
    CHECK(name("", {"train.clip=1.0"}) != first);
    CHECK(name("", {"train.clip=none"}) == first);
  }

  TEST_CASE_FIXTURE(Bench, "arms and shared parameters: a seed's data and initial weights are those of every arm") {
    auto const ablation = load("vary: {model.attention: [scaled, additive]}\n");
    auto const weights = [&](Arm const& arm) {
      auto const settings = trial_of(ablation, arm.name, arm.changes, 5).settings;
      Parameters parameters(static_cast<std::uint64_t>(settings.seed), DType::float64, settings.init);
      make_model(settings.model, parameters, Signature::tokens(9));
      return parameters.find("blocks.0.mlp.up.weight")->to_vector();
    };
    CHECK(weights(ablation.arms[0]) == weights(ablation.arms[1]));
  }

  TEST_CASE_FIXTURE(Bench, "what is wrong is refused with its place and the nearest right word") {
    refuses("", "there is nothing to compare: give vary, together or add");
    refuses("vari: {model.heads: [1, 2]}", "a.yaml:3:1: unknown key 'vari'; did you mean 'vary'?");
    for (char const* said : {"a.yaml:3:", "did you mean 'heads'?"}) refuses("vary: {model.heds: [1, 2]}", said);
    refuses("vary: {model.heads: [1, 3]}", "3 heads do not divide the width 8");
    refuses("vary: {model.heads: 2}", "a.yaml:3:21: vary: model.heads: wants a list of values, found '2'");
    refuses("together: {model.heads: [1, 2], model.width: [8]}", "they move in step");
    refuses(two + "skip: [{model.heads: 4}]", "a.yaml:4:8: skip: no arm has {model.heads: 4}");
    refuses("vary: {model.attention: [dot, scaled]}\nbaseline: sclaed", "did you mean 'scaled'?");
    refuses(two + "seeds: 0", "a.yaml:4:8: seeds: wants how many, 1 … 10000, or a list of seeds, found '0'");
    refuses(two + "better: more", "better");
    refuses(two + "metric: validation.exct",
            "a.yaml:4:9: metric: there is no metric 'validation.exct'; did you mean 'validation.exact'? (heed list metrics shows all)");
    for (char const* unknown : {"validation.meteor", "validation.rouge", "validation.chrf"}) {  // of another kind than any that there is
      auto const message = refused(two + "metric: " + unknown);
      contains(message, "there is no metric");
      CHECK(message.find("did you mean") == std::string::npos);
    }
    refuses(two + "metric: validation.acuracy", "did you mean 'validation.accuracy'?");
    refuses(two + "metric: grad_norm", "add `better: lower` or `better: higher`");
    refuses(two + "better: higher", "a.yaml:4:9: better: lower is better for 'validation.loss'");
    refuses("vary: {model.dropout: [0, -0.0]}", "are one configuration");
    CHECK(!load(two).settings.margin);
    CHECK(!load(two + "metric: grad_norm\nbetter: lower").settings.higher_is_better());
    refuses(two + "base: other.yaml", "a.yaml");
    for (auto const& base : {std::string("other.yaml"), std::string(300, 'b')}) refuses(two, "base: there is no file", {"base=" + base});
    refuses(two, "bsae.yaml; did you mean 'base.yaml'?", {"base=bsae.yaml"});
    refuses(two, "is not the name of a folder", {"ablation=../x"});
    refuses(two, "argument 'name=x': name: the folder of an ablation is named by", {"name=x"});
    refuses(two, "argument 'seed=2': seed: the trials of an ablation take", {"seed=2"});
    refuses("vary: {seed: [1, 2]}", "a.yaml:3:15: seed: the trials of an ablation take");
  }

  TEST_CASE_FIXTURE(Bench, "an arm's name is the name of a folder") {
    auto const named = [](std::string const& name) { return "add: {plain: {}, " + name + ": {model.width: 16}}"; };
    for (auto const& [name, why] : std::vector<std::pair<std::string, std::string>>{
             {"../../x", "'..' is no name"},
             {"/tmp/x", "it begins with '/'"},
             {"a/b", "it holds '/'"},
             {"\".\"", "'.' is no name"},
             {"..", "'..' is no name"},
             {"\"a\\nb\"", "U+000A"},
             {"\"a\\u202eb\"", "U+202E"},
             {"\"a\\u2066b\"", "U+2066"},
             {"\"a\\u200eb\"", "U+200E"},
             {std::string(110, 'a'), "it has 110 bytes, more than 109"},
         }) {
      auto const message = refused(named(name));
      contains(message, "a.yaml:3:18: add: '");
      contains(message, "cannot be an arm's name");
      contains(message, why);
    }
    CHECK(load(named("\"it's naïve, no?\"")).arms[1].name == "it's naïve, no?");
    refuses(two, "ablation: '.' is not the name of a folder", {"ablation=."});
  }

  TEST_CASE_FIXTURE(Bench, "what arms vary makes names of folders whatever it is; long ones are cut, and stay different") {
    CHECK(names(load("vary: {init.from: [../../x, /y, 'a b', '']}").arms) == Words{"..-..-x", "-y", "a-b", "none"});
    std::string const path(150, 'p');
    auto const arms = names(load("vary: {init.from: [" + path + "1, " + path + "2]}").arms);
    CHECK(arms[0] != arms[1]);
    for (auto const& arm : arms) CHECK(arm.size() == 109);
    CHECK(arms[0].starts_with(std::string(100, 'p') + "-"));
  }

  TEST_CASE_FIXTURE(Bench, "more arms or runs than can be meant are refused before any is made") {
    std::string const ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    Words const keys{"seed",
                     "train.steps",
                     "train.batch",
                     "train.accumulate",
                     "train.log.every",
                     "train.evaluate.every",
                     "train.checkpoint.every",
                     "model.layers"};
    auto const grid = fmt::format("{}", fmt::join(mapped(keys, [&](std::string const& key) { return key + ": " + ten; }), ", "));
    refuses("vary: {" + grid + "}", "a.yaml:3:7: 100000000 arms; at most 10000 are allowed");
    refuses(two + "tune: {grid: {" + grid + "}}", "100000000 points of the tuning grid; at most");
    refuses("vary: {model.layers: " + ten + ", train.batch: " + ten + "}\nseeds: 5000", "500000 runs; at most 100000");
    refuses("vary: {model.layers: " + ten + "}\ntune: {grid: {train.batch: " + ten + "}, seeds: 5000}",
            "500000 runs to tune; at most 100000");
  }

  TEST_CASE("the configurations that come with heed are sound") {
    std::set<std::string> found;
    for (auto const& entry : std::filesystem::recursive_directory_iterator("configs")) {
      if (entry.path().extension() != ".yaml" || !is_ablation(heed::load(entry.path()))) continue;
      CAPTURE(entry.path().string());
      found.insert(entry.path().filename().string());
      try {
        Ablation const ablation = load_ablation(entry.path(), {}, {});
        auto const& criteria = ablation.settings.claim.criteria.items;  // only of one arm's value a claim needs no other arm
        bool const of_one = !criteria.empty() && std::ranges::all_of(criteria, [](auto const& each) { return each.kind == "value"; });
        CHECK(ablation.arms.size() >= (of_one ? 1 : 2));
      } catch (ConfigError const& error) {
        CHECK_MESSAGE(test::is_of_missing_room(error.what()), error.what());
      }
    }
    CHECK(found.contains("attention.yaml"));
  }

  TEST_CASE("the board shows arms and seeds, and only counts where they do not fit") {
    std::vector<Job> const jobs{{.arm = 0, .seed = 1, .experiment = {}, .state = Job::State::done, .seconds = 10, .value = 1.25},
                                {.arm = 1, .seed = 1, .experiment = {}, .state = Job::State::running, .share = 0.4, .seconds = 8},
                                {.arm = 0, .seed = 2, .experiment = {}, .state = Job::State::failed},
                                {.arm = 1, .seed = 2, .experiment = {}}};
    CHECK(seconds_left(jobs, 1) == doctest::Approx(12 + 10));
    CHECK(seconds_left(jobs, 2) == doctest::Approx(12));
    CHECK(board_page("x", {"dot", "scaled"}, jobs, 22, 80, 24) ==
          "x: 1/4 runs, 1 running, 1 failed, 0:22 left\n"
          "          seed 1  seed 2\n"
          "  dot     1.2500  failed\n"
          "  scaled  40 %    ·\n");
    CHECK(board_page("x", {"dot", "scaled"}, jobs, -1, 20, 24) == "x: 1/4 runs, 1 run…\n");
    CHECK(board_page("x", {"dot", "scaled"}, jobs, -1, 80, 3) == "x: 1/4 runs, 1 running, 1 failed\n");
  }

  TEST_CASE_FIXTURE(test::InFolder, "a run's history: the last value and the best, a torn last line left out, damage named") {
    auto const metrics = folder / "metrics.jsonl";
    test::put(
        metrics,
        "{\"step\":0,\"loss\":3.5,\"v\":2}\n{\"step\":5,\"v\":1}\n{\"step\":9,\"v\":\"NaN\"}\n{\"step\":10,\"v\":1.5}\n{\"step\":11,");
    auto const history = read_history(folder.path());
    CHECK(history.at("v").size() == 4);
    AblationSettings settings;
    settings.metric = "v";
    CHECK(metric_value(history, settings) == 1.5);
    settings.at = "best";
    CHECK(metric_value(history, settings) == 1);
    settings.better = "higher";
    CHECK(metric_value(history, settings) == 2);
    settings.metric = "w";
    CHECK(!metric_value(history, settings));
    CHECK(last_step(folder.path()) == 11);
    settings.better.reset();
    test::put(metrics,
              "{\"step\":0,\"validation.exact\":0.5}\n{\"step\":1,\"validation.exact\":0.75}\n{\"step\":2,\"validation.exact\":0.25}\n");
    settings.metric = "validation.exact";
    CHECK(metric_value(read_history(folder.path()), settings) == 0.75);
    test::put(metrics, "{\"step\":0}\nnonsense\n{\"step\":1}\n");
    CHECK_THROWS_WITH_AS(read_history(folder.path()), doctest::Contains("metrics.jsonl:2: the row of metrics is not JSON"), FileError);
  }
}
