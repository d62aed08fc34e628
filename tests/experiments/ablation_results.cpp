#include "experiments/folder/record.hpp"
#include "experiments/report/ablation_result.hpp"
#include "nn/files/npz.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/small_ablation.hpp"

// What an ablation makes of its trials: of those that diverge, of results of any size, of costs and probes, and of its tuning.

using namespace heed;
namespace fs = std::filesystem;

namespace {

using test::Arguments, test::check_ends, test::check_holds, test::OneAblation;

/// The result in summary.json is written as it was read.
void check_read_back(test::SmallAblation const& bench) {
  test::unseal(bench.small);
  auto const json = test::json_of<test::OrderedJson>(bench.small / "summary.json");
  CHECK(json_of(ablation_result_of(json), json["environment"]).dump() == json.dump());
}

}  // namespace

TEST_SUITE("ablation_results") {
  TEST_CASE_FIXTURE(OneAblation, "seeds that diverge count as worse than any number, and are named; results of any size have verdicts") {
    Arguments const six{"vary={model.attention: [scaled, dot]}", "seeds=6", "train.steps=4"};
    CHECK(bench.run(six).code == 0);
    auto const folders = bench.summary()["arms"][1]["folders"];
    auto const put = [&](std::size_t seed, std::string const& value) {
      auto const file = bench.small / folders[seed].get<std::string>() / "metrics.jsonl";
      auto text = test::get(file);
      for (auto at = text.find("\"validation.loss\":"); at != text.npos; at = text.find("\"validation.loss\":", at + 1)) {
        auto const begin = at + 18, end = text.find_first_of(",}", begin);
        text.replace(begin, end - begin, value);
      }
      test::put(file, text);
      test::unseal(file.parent_path());
    };
    for (std::size_t seed = 0; seed < 6; ++seed) put(seed, "1e" + std::to_string(163 + 15 * seed));
    auto outcome = bench.run(six);
    auto arm = bench.summary()["arms"][1];
    CHECK(arm["difference"]["verdict"] == "worse");
    CHECK(arm["difference"]["p"] == 0.03125);
    CHECK(arm["mean"].get<double>() == doctest::Approx(1e238 / 6));
    CHECK(arm["diverged"].empty());
    for (auto const& line : {outcome.output, test::get(bench.small / "summary.md")}) {
      CHECK(line.find("1.67e237") != std::string::npos);
      CHECK(line.find(std::string(20, '0')) == std::string::npos);
    }

    put(1, "\"Infinity\""), put(3, "\"NaN\""), put(4, "\"Infinity\"");
    outcome = bench.run(six);
    INFO(outcome.output);
    auto const summary = bench.summary();
    arm = summary["arms"][1];
    CHECK(arm["values"].size() == 6);
    CHECK(arm["values"]["4"] == "Infinity");
    CHECK(arm["diverged"] == test::Json::array({2, 4, 5}));
    CHECK(arm["mean"] == "Infinity");
    CHECK(arm["interval"].is_null());
    CHECK(arm["difference"]["verdict"] == "worse");
    CHECK(summary["arms"][0]["values"].size() == 6);
    std::string const named = "dot: seeds 2, 4 and 5 diverged: validation.loss is not finite, which counts as worse than any number";
    check_holds(summary["warnings"].dump(), {named});
    check_holds(outcome.output, {named, "none: infinite", "6 (3 diverged)"});
    check_holds(test::get(bench.small / "report.html"), {named, "∞ (no interval)", "6/6 (3 diverged)"});
    if (!fs::exists(bench.small / "figures")) return;  // without gnuplot
    check_holds(test::get(bench.small / "figures/differences.svg"), {"+∞"});
    check_holds(test::get(bench.small / "figures/validation_loss.svg"), {"dot (not finite)"});
  }

  TEST_CASE_FIXTURE(OneAblation, "effects of a grid whose arms diverge on both sides are not computed, and that is said") {
    check_ends(bench.run({"--quiet", "vary={model.attention: [scaled, dot], train.optimizer.lr: [0.001, 1.0e+9]}", "train.log.every=1",
                          "baseline={model.attention: scaled, train.optimizer.lr: 1e-3}"}),
               4);
    auto const summary = bench.summary();
    CHECK(summary["effects"][0]["mean"] == "NaN");
    CHECK(summary["effects"][1]["mean"] == "Infinity");
    check_holds(summary["warnings"].dump(), {"2 of 3 effects of keys cannot be computed: arms diverged on both sides of them"});
    CHECK(summary["sentences"].dump().find("no interaction is clear") == std::string::npos);
    check_holds(test::get(bench.small / "report.html"), {"NaN: values that are infinite on both sides have no difference."});
    check_read_back(bench);
  }

  TEST_CASE_FIXTURE(OneAblation, "a training that ends in NaN counts like an infinite metric; one that was killed is missing") {
    Arguments const wild{"vary={train.optimizer.lr: [0.001, 1.0e+9]}", "baseline=1e-3", "train.log.every=1"};
    CHECK(bench.run(wild).code == 4);
    auto summary = bench.summary();
    CHECK(summary["arms"][1]["values"]["1"] == "Infinity");
    CHECK(summary["arms"][1]["diverged"] == test::Json::array({1, 2}));
    CHECK(summary["arms"][1]["difference"]["mean"] == "Infinity");
    auto const record = bench.small / summary["failures"][0]["folder"].get<std::string>() / "failure.json";
    test::change_json(record, [](test::OrderedJson& failure) { failure["code"] = 137; });
    CHECK(test::run_heed({"report", "small", "--output", bench.runs.string()}).code == 0);
    CHECK(bench.run(test::joined(wild, {"--quiet", "metric=validation.exact", "better=higher"})).code == 4);
    CHECK(bench.summary()["arms"][1]["values"]["2"] == "-Infinity");
  }

  TEST_CASE_FIXTURE(OneAblation, "arms that come to the same are identical, without a margin too, and equal means are named together") {
    // no gradient is as long as 1e9, so that clipping to it changes nothing
    test::run_well(bench.command({"vary={model.attention: [scaled, dot], train.clip: [none, 1.0e+9]}",
                                  "baseline={model.attention: scaled, train.clip: none}", "--quiet", "train.steps=4"}));
    auto const summary = bench.summary();
    CHECK(summary["arms"][1]["difference"]["verdict"] == "identical");
    check_holds(summary["sentences"].dump(), {"clip=1.0e+9 and scaled · clip=none are identical on all 2 seeds"});
    auto const first = summary["sentences"][0].get<std::string>();
    CHECK(first.starts_with("lowest mean, the same of 2 arms: "));
    CHECK(first.find("clip=none and ") != std::string::npos);
    CHECK(summary["arms"][3]["difference"]["verdict"] == "unclear");
  }

  TEST_CASE_FIXTURE(OneAblation,
                    "more seeds for the comparison choose nothing anew; tuning is counted by plan, and shown in results and report") {
    Arguments const two{"vary={model.attention: [scaled, dot]}", "tune={grid: {train.optimizer.lr: [1.0e-2, 1.0e-3, 1.0e-7]}, seeds: 1}"};
    auto const plans = [&](Arguments const& more, std::string const& said) {
      check_holds(test::run_heed(test::as("plan", bench.command(test::joined(two, more)))).output, {said});
    };
    plans({}, "2 arms, 10 runs, ");
    CHECK(!fs::exists(bench.runs));
    CHECK(bench.run(two).code == 0);
    plans({}, "2 arms, 10 runs (10 done already)");
    plans({"seeds=4"}, "2 arms, 14 runs (10 done already)");
    auto const before = bench.finished();
    CHECK(before.size() == 10);
    auto const outcome = test::run_well(bench.command(test::joined(two, {"seeds=3"})));
    auto const after = bench.finished();
    CHECK(after.size() == 12);
    test::check_untouched(before, after);

    CHECK(bench.rows().front() == "arm,model.attention,train.optimizer.lr,seed,step,metric,value");
    CHECK(bench.rows()[1].starts_with("scaled,scaled,1.0e-2,1,"));
    auto const summary = bench.summary();
    auto const& tuning = summary["tuning"];
    CHECK(tuning["seeds"] == test::Json::array({10001}));
    CHECK(tuning["points"].size() == 3);
    CHECK(tuning["arms"][1]["chosen"] == 0);
    CHECK(tuning["arms"][1]["scores"][0].get<double>() < tuning["arms"][1]["scores"][2].get<double>());
    std::string const edge =
        "the selected lr 1.0e-2 for scaled, dot lies on the edge: it is the largest that was tried, and a larger one may be "
        "better";
    for (auto const& text : {outcome.output, summary["warnings"].dump()}) check_holds(text, {edge});
    check_holds(test::get(bench.small / "report.html"), {edge, "<h2>Tuning</h2>", "Scores of the tuning grid"});
    check_holds(test::get(bench.small / "summary.md"), {edge, "| arm | 1.0e-2 | 1.0e-3 | 1.0e-7 |"});
    if (fs::exists(bench.small / "figures")) CHECK(fs::exists(bench.small / "figures" / "tuning.svg"));
    check_read_back(bench);
  }

  TEST_CASE_FIXTURE(OneAblation, "a trial's cost that is missing or no number is left out, and stops nothing") {
    CHECK(bench.run({"--quiet"}).code == 0);
    auto const folders = bench.summary()["arms"][0]["folders"];
    for (auto const& folder : folders) {
      test::unseal(bench.small / folder.get<std::string>());
      test::change_json(bench.small / folder.get<std::string>() / "summary.json", [](test::OrderedJson& summary) {
        summary["time.tokens_per_second"] = nullptr;  // as infinity was once written
        summary.erase("memory.peak");
      });
    }
    check_ends(bench.run(), 0);
    auto const arms = bench.summary()["arms"];
    CHECK(!arms[0].contains("time.tokens_per_second"));
    CHECK(!arms[0].contains("memory.peak"));
    CHECK(arms[0]["time.seconds"].is_number());
    CHECK(arms[1]["time.tokens_per_second"].get<double>() > 0);
  }

  TEST_CASE_FIXTURE(OneAblation, "probes.npz: an array [seed, step, layer, head] for each arm and probe") {
    test::run_well(bench.command({"--quiet", "model.layers=2", "train.steps=4", "vary={model.attention: [scaled, dot]}", "seeds=3",
                                  "probes={every: 2, attention: [entropy, sink_rate], activations: [rms], gradients: [norm_by_layer]}"}));
    auto const arrays = read_npz(bench.small / "probes.npz");
    auto const shape = [&](std::string const& name) {
      REQUIRE_MESSAGE(arrays.contains(name), name);
      return to_string(arrays.at(name).tensor().shape());
    };
    auto const steps = arrays.at("dot/probe.attention.entropy.steps").tensor().to_vector();
    auto const count = std::to_string(steps.size());
    CHECK(steps.size() >= 2);
    CHECK(shape("dot/probe.attention.entropy") == "[3, " + count + ", 2, 2]");
    CHECK(shape("dot/probe.activations.rms") == "[3, " + count + ", 2]");
    CHECK(shape("dot/probe.attention.sink_rate") == "[3, " + count + "]");
    CHECK(shape("dot/probe.attention.sink_rate.layers") == "[3, " + count + ", 2]");
    auto const entropy = arrays.at("dot/probe.attention.entropy").tensor();
    auto const folders = bench.summary()["arms"][1]["folders"];
    Index at = 0;
    for (auto const& folder : folders) {
      auto const history = read_history(bench.small / folder.get<std::string>());
      for (std::size_t step = 0; step < steps.size(); ++step)
        for (char const* head : {"layer0.head0", "layer0.head1", "layer1.head0", "layer1.head1"})
          CHECK(entropy.at(at++) == history.at(std::string("probe.attention.entropy.") + head)[step].second);
    }
    for (auto const& each : arrays) CHECK_MESSAGE(each.first.find(".head") == std::string::npos, each.first);
  }

  TEST_CASE_FIXTURE(OneAblation, "a metric of which more is better: the verdict, the tables and tuning go upwards") {
    auto const outcome = test::run_well(
        bench.command({"metric=validation.exact", "vary={model.attention: [scaled, dot]}", "train.optimizer.kind=adamw", "train.steps=120",
                       "train.batch=8", "tune={grid: {train.optimizer.lr: [1.0e-7, 1.0e-2]}, seeds: 1}"}));
    check_holds(outcome.output, {"validation.exact (last, higher is better)"});
    auto const summary = bench.summary();
    CHECK(summary["better"] == "higher");
    CHECK(summary["unit"] == "");
    for (auto const& arm : summary["arms"]) CHECK(arm["tuned"]["train.optimizer.lr"] == "1.0e-2");
  }
}
