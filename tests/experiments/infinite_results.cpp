#include <regex>

#include "experiments/ablation/results.hpp"
#include "tests/experiments/comparison.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/small_ablation.hpp"

// Trials whose metric is infinite, or so large that sums and squares of it are: what they leave is read again by every command.

using namespace heed;
namespace fs = std::filesystem;

namespace {

using test::Arguments;

Arguments const two_arms{"vary={model.attention: [scaled, dot]}", "seeds=6", "train.steps=4"};

/// Changes a run's summary, without what would tell that it was changed.
void change_summary(fs::path const& run, char const* key, test::OrderedJson const& value) {
  test::unseal(run);
  test::change_json(run / "summary.json", [&](test::OrderedJson& summary) { summary[key] = value; });
}

/// Gives a run's metric a value, as JSON has it, in its rows and in its summary.
void put(fs::path const& run, std::string const& value) {
  static std::regex const metric(R"(("validation\.loss": ?)[^,}\n]+)");
  test::put(run / "metrics.jsonl", std::regex_replace(test::get(run / "metrics.jsonl"), metric, "$01" + value));
  change_summary(run, "validation.loss", test::OrderedJson::parse(value));
}

struct Bench : test::SmallAblation {
  /// The same to an arm's trials, seed by seed; what is empty stays.
  void put_all(std::size_t arm, Arguments const& values) const {
    auto const folders = summary()["arms"][arm]["folders"];
    for (std::size_t seed = 0; seed < values.size(); ++seed)
      if (!values[seed].empty()) put(small / folders[seed].get<std::string>(), values[seed]);
  }

  /// Every command reads what there is: the same call again trains nothing and says what it said; report and compare work.
  test::Json read_by_all(Arguments const& keys) const {
    auto const trained = finished();
    auto const first = run(keys);
    test::check_ends(first, 0);
    auto const found = summary();
    auto const again = run(keys);
    CHECK(again.code == 0);
    CHECK(again.output == first.output);
    CHECK(summary() == found);
    CHECK(finished().size() == trained.size());
    fs::remove(small / "report.html");
    for (char const* const command : {"report", "compare"}) {
      auto const outcome = test::run_heed({command, small.string()});
      INFO(outcome.errors);
      CHECK((outcome.code == 0 && outcome.errors.empty()));
    }
    test::check_holds(test::get(small / "report.html"), {"scaled"});
    return found;
  }
};

/// Finished.
struct TwoArms : Bench {
  TwoArms() { REQUIRE(run(two_arms).code == 0); }
};

void says(test::Json const& summary, char const* list, std::string const& sentence) {
  test::check_holds(summary[list].dump(-1, ' ', false), {sentence});
}

}  // namespace

TEST_SUITE("infinite_results") {
  TEST_CASE_FIXTURE(TwoArms, "a baseline that is infinite, on every seed or on one, is compared, named and counted") {
    put_all(0, Arguments(6, "\"Infinity\""));
    auto summary = read_by_all(two_arms);
    auto const& baseline = summary["arms"][0];
    auto const& arm = summary["arms"][1];
    CHECK((baseline["values"].size() == 6 && baseline["mean"] == "Infinity" && baseline["diverged"].size() == 6));
    CHECK((arm["difference"]["verdict"] == "better" && arm["difference"]["mean"] == "-Infinity" && arm["difference"]["p"] == 0.03125));
    says(summary, "sentences", "dot is infinitely better than scaled (p = 0.031, 6 seeds); no interval, for values are infinite");
    says(summary, "warnings", "scaled: seeds 1, 2, 3, 4, 5 and 6 diverged");
    CHECK(test::run_heed(command(two_arms)).output.find("6 (6 diverged)") != std::string::npos);

    // Both on every seed: there is no pair.
    put_all(1, Arguments(6, "\"NaN\""));
    summary = read_by_all(two_arms);
    CHECK(summary["arms"][1]["difference"].is_null());
    says(summary, "warnings", "dot and scaled both diverged with seeds 1, 2, 3, 4, 5 and 6: no pair");
    CHECK(summary["arms"][1]["diverged"].size() == 6);
  }

  TEST_CASE_FIXTURE(TwoArms, "one infinite seed of the baseline's leaves an arm's difference infinite and its verdict unclear") {
    put_all(0, {"\"Infinity\""});
    auto const summary = read_by_all(two_arms);
    CHECK(summary["arms"][0]["diverged"] == test::Json::array({1}));
    CHECK((summary["arms"][0]["values"].size() == 6 && summary["arms"][1]["values"].size() == 6));
    auto const& difference = summary["arms"][1]["difference"];
    CHECK((difference["mean"] == "-Infinity" && difference["seeds"] == 6 && difference["verdict"] == "unclear"));
  }

  TEST_CASE_FIXTURE(TwoArms, "values whose sums and squares are beyond the largest number leave a summary that every command reads again") {
    put_all(1, {"1e308", "1.7e308", "1.79e308", "1.7e308", "1.6e308", "1.5e308"});
    auto summary = read_by_all(two_arms);
    auto arm = summary["arms"][1];
    CHECK(arm["mean"].get<double>() == doctest::Approx(1.5483e308).epsilon(1e-3));
    CHECK(arm["deviation"].get<double>() == doctest::Approx(2.8638e307).epsilon(1e-3));
    CHECK(arm["values"]["3"].get<double>() == 1.79e308);
    CHECK((arm["diverged"].empty() && arm["difference"]["verdict"] == "worse"));

    put_all(0, {"-1.7e308", "-1.6e308", "-1.7e308", "-1.7e308", "-1.5e308", "-1.7e308"});  // no difference is within range
    summary = read_by_all(two_arms);
    arm = summary["arms"][1];
    CHECK((summary["arms"][0]["mean"].get<double>() < -1.5e308 && arm["difference"]["mean"] == "Infinity"));
    CHECK((summary["arms"][0]["diverged"].empty() && arm["difference"]["verdict"] == "worse"));
    test::check_holds(test::run_heed({"compare", small.string()}).output, {"▁▁", "██"});

    // Of single runs too.
    auto const first = small / arm["folders"][0].get<std::string>(), other = small / arm["folders"][1].get<std::string>();
    for (char const* value : {"1.79e308", "\"Infinity\"", "\"NaN\""}) {
      CAPTURE(value);
      put(first, value);
      CHECK(test::run_heed({"report", first.string()}).code == 0);
      CHECK(test::run_heed({"compare", first.string(), other.string()}).code == 0);
      auto const again = test::run_heed({"run", (first / "config.yaml").string(), "--output", small.string()});
      CHECK((again.code == 0 && again.output.find("finished already") != std::string::npos));
    }
  }

  TEST_CASE_FIXTURE(TwoArms, "costs that overflow are written as what they are") {
    auto const before = summary();
    for (auto const& trial : before["arms"][1]["folders"]) change_summary(small / trial.get<std::string>(), "time.seconds", 1e308);
    CHECK(run(two_arms).code == 0);
    CHECK(summary()["arms"][1]["time.seconds"] == "Infinity");
    CHECK(test::run_heed({"report", small.string()}).code == 0);
  }

  TEST_CASE("effects of keys are means of what is finite, however large the sums") {
    auto const grid = grid_of({{{"a", "x"}, {"b", "1"}}, {{"a", "y"}, {"b", "1"}}, {{"a", "x"}, {"b", "2"}}, {{"a", "y"}, {"b", "2"}}});
    REQUIRE(grid);
    auto const values = [](double value) { return test::by_seed(std::vector(6, value)); };
    // y − x is 2·1.7e308 at b = 1 and as much below 0 at b = 2.
    auto const effects = effects_of(*grid, {values(-1.7e308), values(1.7e308), values(1.7e308), values(-1.7e308)}, 0, "", {});
    REQUIRE(effects.size() == 3);
    CHECK((effects[0].comparison.mean == 0 && effects[1].comparison.mean == 0));
    CHECK(effects[0].comparison.verdict == Verdict::identical);
    CHECK(effects[2].comparison.mean == -test::infinity);  // four times as much, which no number is
    auto const ordinary = effects_of(*grid, {values(1.1), values(1.4), values(1.3), values(1.2)}, 0, "", {});
    CHECK(ordinary[0].comparison.mean == ((1.4 - 1.1) + (1.2 - 1.3)) / 2);
  }

  TEST_CASE_FIXTURE(Bench, "a tuning grid on which an arm's metric is nowhere finite chooses nothing for it, and says so") {
    Arguments const tuned{"vary={model.attention: [scaled, dot, additive]}", "train.steps=4",
                          "tune={grid: {train.optimizer.lr: [1.0e-2, 1.0e-3]}, seeds: 1}"};
    REQUIRE(run(tuned).code == 0);
    for (auto const& [name, time] : finished()) {
      if (name.starts_with("tune-dot")) put(small / name, "\"Infinity\"");
      if (name.starts_with("tune-scaled-1.0e-3")) put(small / name, "1.7e308");
    }
    auto const summary = read_by_all(tuned);
    CHECK(summary["tuning"]["arms"][0]["chosen"] == 0);
    CHECK(summary["tuning"]["arms"][1]["chosen"].is_null());
    CHECK(summary["tuning"]["arms"][1]["scores"] == test::Json::array({"Infinity", "Infinity"}));
    says(summary, "warnings", "dot: at no point of the tuning grid does training end with a finite validation.loss: it is not compared");
    CHECK(summary["warnings"].dump().find("for scaled, dot") == std::string::npos);
  }
}
