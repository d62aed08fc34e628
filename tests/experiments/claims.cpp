// Claims: the arithmetic of criteria against independent computations, registrations, and the command.

#include "experiments/ablation/claim.hpp"
#include "experiments/ablation/plan.hpp"
#include "tests/experiments/comparison.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/refusal.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("claims") {
  using namespace heed;
  using doctest::Approx;

  namespace {

  ArmResult arm_of(std::string const& name, KeyValues const& keys, std::vector<double> const& values) {
    ArmResult arm;
    arm.name = name, arm.keys = keys, arm.values = test::by_seed(values);
    return arm;
  }

  /// Of arms that are named after the value of a key k.
  AblationResult result_of(std::vector<std::pair<std::string, std::vector<double>>> const& arms) {
    AblationResult result;
    for (auto const& [name, values] : arms) result.arms.push_back(arm_of(name, {{"k", name}}, values));
    result.seeds.assign(arms.front().second.size(), 0);
    return result;
  }

  Criterion criterion(std::string const& kind, std::string const& arm, std::string const& from = "") {
    Criterion made;
    made.kind = kind, made.arm = arm, made.from = from;
    return made;
  }

  std::string const small = R"(
ablation: c
base:
  name: copy
  data: {kind: copy, length: 2, vocabulary: 4, validation: 8}
  model: {kind: gpt, layers: 1, heads: 2, width: 8, context: 6}
  train: {steps: 2, batch: 2, evaluate: {every: 2}}
vary: {model.width: [8, 16]}
seeds: 3
claim:
  says: width does nothing in two steps
  source: nobody, 2026
  published: {value: 0, seeds: 1, selection: best of 3}
  criteria: [{kind: equivalence, arm: "16", from: "8", margin: 10}]
  deviations: [all of it]
)";

  std::string replaced(std::string text, std::string const& from, std::string const& to) {
    auto const at = text.find(from);
    REQUIRE(at != text.npos);
    return text.replace(at, from.size(), to);
  }

  /// A folder of claims, and what the program says of it.
  struct Claims : test::InFolder {
    Claims() { std::filesystem::create_directories(claims); }
    void put(std::string const& name, std::string const& text) const { test::put(claims / name, text); }
    std::string run(std::string const& name, std::vector<std::string> const& more = {}) const {
      return test::run_well(test::joined({"run", claims / name, "--output", output}, more)).output;
    }
    std::string listed(std::vector<std::string> const& more = {}) const {
      return test::run_well(test::joined({"claims", "--claims", claims, "--output", output}, more)).output;
    }
    std::filesystem::path claims = folder / "claims", output = folder / "runs";
  };

  }  // namespace

  TEST_CASE("differences and values: mean and t interval, by hand; the verdict follows from the interval") {
    auto const result = result_of({{"a", {1, 2, 3, 4}}, {"b", {1.5, 2.1, 3.9, 4.5}}});
    auto c = criterion("difference", "b", "a");
    c.at_least = 0.1;
    auto const found = finding_of(c, result);
    double const d[]{0.5, 0.1, 0.9, 0.5};
    double mean = 0, squares = 0;
    for (double const x : d) mean += x / 4;
    for (double const x : d) squares += (x - mean) * (x - mean) / 3;
    double const half = 3.182446305284263 * std::sqrt(squares / 4);
    CHECK(found.value == Approx(mean).epsilon(1e-14));
    REQUIRE(found.interval);
    CHECK(found.interval->low == Approx(mean - half).epsilon(1e-12));
    CHECK(found.interval->high == Approx(mean + half).epsilon(1e-12));
    CHECK(found.verdict == ClaimVerdict::unclear);
    REQUIRE(found.seeds);
    CHECK(*found.seeds > 4);
    for (auto const& [bound, verdict] : {std::pair(mean - half - 1e-9, ClaimVerdict::holds),
                                         {mean - half + 1e-9, ClaimVerdict::unclear},
                                         {mean + half + 1e-9, ClaimVerdict::fails}}) {
      c.at_least = bound;
      CHECK(finding_of(c, result).verdict == verdict);
    }
    auto v = criterion("value", "a");
    v.at_most = 2.5 + 3.182446305284263 * std::sqrt(5.0 / 3 / 4) + 1e-9;
    CHECK(finding_of(v, result).verdict == ClaimVerdict::holds);
    auto e = criterion("equivalence", "b", "a");
    e.margin = mean + half + 1e-9;
    CHECK(finding_of(e, result).verdict == ClaimVerdict::holds);
    e.margin = mean;
    CHECK(finding_of(e, result).verdict == ClaimVerdict::unclear);
    e.margin = std::max(1e-9, mean - half - 1e-9);
    CHECK(finding_of(e, result).verdict == (mean - half > 0 ? ClaimVerdict::fails : ClaimVerdict::unclear));
  }

  TEST_CASE("an interval ends at the bounds of the metric, which criteria name") {
    auto result = result_of({{"a", {0.99, 0.5, 1}}, {"b", {0, 0.9, 0}}});
    auto v = criterion("value", "a"), d = criterion("difference", "a", "b");
    v.at_least = 0.9, d.at_least = 0.1;
    CHECK(finding_of(v, result).interval->high > 1);
    result.metric = "validation.accuracy";
    CHECK(finding_of(v, result).interval->high == 1);
    CHECK(finding_of(v, result).interval->low < 0.5);
    CHECK(finding_of(v, result).verdict == ClaimVerdict::unclear);
    CHECK(finding_of(d, result).interval->high == 1);
    CHECK(finding_of(d, result).interval->low == -1);
    CHECK(v.in_words(result.metric) == "validation.accuracy of a at least 0.9");
    CHECK(d.in_words(result.metric) == "validation.accuracy, difference of a and b at least 0.1");
    CHECK(v.in_words() == "value of a at least 0.9");  // as it is registered
  }

  TEST_CASE("shares: Wilson's interval") {
    auto c = criterion("share", "a");
    c.reaches = 1, c.at_least = 0.5;
    std::vector<double> values(10, 2.0);
    values[3] = 0;
    auto const found = finding_of(c, result_of({{"a", values}}));
    CHECK(found.value == 0.9);
    CHECK(found.interval->low == Approx(0.5958499732).epsilon(1e-9));  // the roots of (0.9 − p)² = z² p (1 − p)/10
    CHECK(found.interval->high == Approx(0.9821237870).epsilon(1e-9));
    CHECK(found.verdict == ClaimVerdict::holds);
    c.at_least = 0.8;
    auto const open = finding_of(c, result_of({{"a", values}}));
    CHECK(open.verdict == ClaimVerdict::unclear);
    REQUIRE(open.seeds);
    double told = 0;  // the chance of a verdict with so many seeds
    auto const n = static_cast<double>(*open.seeds);
    for (double k = 0; k <= n; ++k) {
      std::vector<double> more(static_cast<std::size_t>(n), 0.0);
      std::fill_n(more.begin(), static_cast<std::size_t>(k), 2.0);
      auto const ways = std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
      if (finding_of(c, result_of({{"a", more}})).verdict != ClaimVerdict::unclear)
        told += std::exp(ways + k * std::log(0.9) + (n - k) * std::log(0.1));
    }
    CHECK(told >= 0.8);
    CHECK(told < 0.84);
    c.below = true, c.reaches = 0, c.at_least.reset(), c.at_most = 0.5;
    CHECK(finding_of(c, result_of({{"a", values}})).value == 0.1);
    CHECK(finding_of(c, result_of({{"a", values}})).verdict == ClaimVerdict::holds);
  }

  TEST_CASE("slope, exponent and rank correlation over a key, planted") {
    std::vector<std::pair<std::string, std::vector<double>>> arms;
    for (double const x : {1.0, 2.0, 4.0, 8.0}) arms.push_back({fmt::format("{}", x), {3 * x + 1, 3.1 * x + 1, 2.9 * x + 1}});
    Criterion c;
    c.kind = "slope", c.key = "k", c.at_least = 2.5;
    CHECK(finding_of(c, result_of(arms)).value == Approx(3).epsilon(1e-12));
    CHECK(finding_of(c, result_of(arms)).verdict == ClaimVerdict::holds);
    for (auto& [name, values] : arms)
      for (double& value : values) value = 5 * std::pow(std::stod(name), -0.5) * (&value == &values[0] ? 1 : 1.1);
    c.kind = "exponent", c.at_least = -0.6, c.at_most = -0.4;
    CHECK(finding_of(c, result_of(arms)).value == Approx(-0.5).epsilon(1e-12));
    CHECK(finding_of(c, result_of(arms)).verdict == ClaimVerdict::holds);
    c.kind = "spearman", c.at_most = -0.5, c.at_least.reset();
    CHECK(finding_of(c, result_of(arms)).value == Approx(-1));
    c.key = "other";
    CHECK(test::refusal([&] { finding_of(c, result_of(arms)); }).find("has no number for the key other") != std::string::npos);
  }

  TEST_CASE("shuffled data do not hold: at most 5 of 100 by chance") {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    int held = 0;
    constexpr int loops = 600;
    for (int loop = 0; loop < loops; ++loop) {
      std::vector<double> a, b;
      for (int seed = 0; seed < 6; ++seed) a.push_back(normal(random)), b.push_back(a.back() + 2 + 0.5 * normal(random));
      for (std::size_t seed = 0; seed < 6; ++seed)
        if (random() % 2) std::swap(a[seed], b[seed]);
      auto c = criterion("difference", "b", "a");
      c.at_least = 0;
      held += finding_of(c, result_of({{"a", a}, {"b", b}})).verdict == ClaimVerdict::holds;
    }
    CHECK(held <= loops / 20);
  }

  TEST_CASE("a trial that is missing or has failed: nothing holds") {
    ClaimSettings claim;
    claim.says = "x", claim.source = "y";
    auto c = criterion("value", "a");
    c.at_least = 0;
    claim.criteria.items.push_back(c);
    auto result = result_of({{"a", {1, 1.1, 1.2}}});
    CHECK(finding_of(claim, result).verdict == ClaimVerdict::holds);
    result.missing.push_back({"a", 4});
    CHECK(finding_of(claim, result).verdict == ClaimVerdict::unclear);
    CHECK(finding_of(claim, result).incomplete.find("1 of 3 trials") == 0);
    claim.criteria.items[0].at_least = 5;
    CHECK(finding_of(claim, result).verdict == ClaimVerdict::fails);
  }

  TEST_CASE_FIXTURE(Claims, "criteria are registered before the first trial; a change is an amendment that is shown") {
    put("c.yaml", small);
    test::check_holds(listed(), {"not run"});
    test::check_holds(run("c.yaml"),
                      {"claim: width does nothing in two steps (nobody, 2026): holds",
                       "validation.loss, difference of 16 and 8 within ± 10", "registered 20", "before any trial had ended"});
    auto const registrations = [&] { return test::json_of(output / "c/claim.json")["registrations"]; };
    CHECK(registrations().size() == 1);
    CHECK(registrations()[0]["trials"] == 6);
    CHECK(registrations()[0]["criteria"] == "difference of 16 and 8 within ± 10");
    CHECK(registrations()[0]["metric"] == "validation.loss (last)");
    test::check_holds(listed(), {"holds"});
    auto const differs = [&](std::string const& from, std::string const& to, std::string const& what) {
      put("c.yaml", replaced(small, from, to));
      test::check_holds(listed(), {"not run", fmt::format("registered last ({})", what)});
    };
    differs("seeds: 3", "seeds: 3\nmetric: validation.accuracy", "metric");
    differs("seeds: 3", "seeds: 3\nat: best", "metric");
    differs("seeds: 3", "seeds: 2", "trials");
    auto older = test::json_of(output / "c/claim.json");
    older["registrations"][0].erase("metric");  // as of earlier revisions
    test::put(output / "c/claim.json", older.dump());
    put("c.yaml", small);
    run("c.yaml", {"--quiet"});
    CHECK(registrations().size() == 1);
    differs("seeds: 3", "seeds: 3\nmetric: validation.accuracy", "metric");  // the numbers are of the other
    differs("margin: 10", "margin: 1.0e-9", "criteria");
    run("c.yaml", {"--quiet"});
    REQUIRE(registrations().size() == 2);
    CHECK(registrations()[1]["finished"] == 6);
    CHECK(registrations()[1]["changed"] == "criteria");
    test::check_holds(listed({"--write"}), {"unclear", "0 (n = 1), best of 3"});
    test::check_holds(test::get(output / "claims/report.html"), {">Claims</p>", "amended", "when 6 trials had ended", "all of it"});
    test::check_holds(test::get(output / "claims/results.csv"), {"difference of validation.loss (nat)"});
    test::check_holds(test::get(claims / "README.md"), {"Verdict: **unclear**", "deviation: all of it", "claims.svg"});
    CHECK(std::filesystem::exists(claims / "claims.svg"));
    test::refuses({"claims", "c", "--claims", claims, "--write"}, 2, {"--write", "leave the names out"});
  }

  TEST_CASE_FIXTURE(Claims, "a trial that is deleted is missed, and --fresh keeps the registrations") {
    put("c.yaml", small);
    run("c.yaml", {"--quiet"});
    std::filesystem::remove_all(output / "c" / test::json_of(output / "c/summary.json")["trials"][0].get<std::string>());
    test::check_holds(listed(), {"unclear", "1 of 6 trials are missing or have failed"});
    put("c.yaml", replaced(small, "margin: 10", "margin: 9"));
    run("c.yaml", {"--quiet", "--fresh"});
    auto const registrations = test::json_of(output / "c/claim.json")["registrations"];
    REQUIRE(registrations.size() == 2);
    CHECK(registrations[1]["finished"] == 5);
    test::check_holds(listed(), {"holds"});
  }

  TEST_CASE("criteria of a study: its rows, their standard errors, and a formula") {
    CsvRows const rows{{"scores", "keys", "quantity", "mean", "standard_error", "theory"},
                       {"sphere", "10", "gap", "3", "0.03", "3.1"},
                       {"sphere", "100", "gap", "30", "0.3", "30.6"},
                       {"sphere", "1000", "gap", "300", "3", ""},
                       {"normal", "10", "gap", "1", "0", "1"}};
    Criterion c;
    c.kind = "exponent", c.key = "keys", c.where = {"scores=sphere", "quantity=gap"}, c.at_least = 0.9;
    auto const exponent = finding_of(c, rows);
    CHECK(exponent.value == Approx(1).epsilon(1e-12));
    double const error = std::sqrt(2.0) * 0.01 / (2 * std::log(10));  // (y₃ − y₁)/(x₃ − x₁) of logarithms, each ± 0.01
    CHECK(exponent.interval->low == Approx(1 - 1.959963984540054 * error).epsilon(1e-12));
    CHECK(exponent.verdict == ClaimVerdict::holds);
    auto pooled = c;
    pooled.where = {"quantity=gap"};
    CHECK(test::refusal([&] { finding_of(pooled, rows); }).find("2 rows have keys = 10: where must select one") != std::string::npos);
    ClaimSettings both;  // what cannot be judged stops no other criterion
    both.criteria.items = {pooled, c};
    CHECK(finding_of(both, rows).verdict == ClaimVerdict::unclear);
    CHECK(finding_of(both, rows).criteria[0].verdict_in_words().starts_with("unclear; 2 rows have"));
    CHECK(finding_of(both, rows).criteria[1].verdict == ClaimVerdict::holds);
    auto without = rows;
    without[2][3] = "0";  // whose logarithm is not finite
    CHECK(finding_of(c, without).verdict == ClaimVerdict::unclear);
    c = {};
    c.kind = "formula", c.where = {"scores=sphere", "keys=10.0"}, c.within = 4;
    CHECK(finding_of(c, rows).value == Approx(10.0 / 3));
    CHECK(finding_of(c, rows).verdict == ClaimVerdict::holds);
    c.within = 3;
    CHECK(finding_of(c, rows).verdict == ClaimVerdict::fails);
    c = {};
    c.kind = "value", c.where = {"keys=100"}, c.at_most = 30;
    CHECK(finding_of(c, rows).verdict == ClaimVerdict::unclear);
    c.where = {"keys=10"};
    CHECK(test::refusal([&] { finding_of(c, rows); }).find("2 rows of results.csv have keys=10") != std::string::npos);
  }

  TEST_CASE("best_exponent: how the rate of the best arm goes with a width, within a seed, of the arms that `where` selects") {
    AblationResult result;
    auto const add = [&](std::string const& form, double width, double rate, std::vector<double> const& losses) {
      KeyValues const keys{{"form", form}, {"model.width", fmt::format("{}", width)}, {"train.optimizer.lr", fmt::format("{}", rate)}};
      result.arms.push_back(arm_of(fmt::format("{} {} {}", form, width, rate), keys, losses));
    };
    for (double const width : {64.0, 128.0, 256.0})
      for (double const rate : {0.25, 0.5, 1.0, 2.0}) {
        double const first = std::abs(std::log2(rate * width / 128)), second = std::abs(std::log2(rate * width / 64));  // 2 … ½; 1 … ¼
        add("standard", width, rate, {first, first, second});
        add("mup", width, rate, {std::abs(rate - 1), std::abs(rate - 0.5), std::abs(rate - 1)});
      }
    Criterion c;
    c.kind = "best_exponent", c.key = "model.width", c.best = "train.optimizer.lr", c.where = {"form=standard"}, c.at_most = -0.9;
    CHECK(finding_of(c, result).value == Approx(-1).epsilon(1e-12));
    CHECK(finding_of(c, result).verdict == ClaimVerdict::holds);
    CHECK(finding_of(c, result).remark == "in 3 seeds a best lr lies on the edge of what was tried");
    c.where = {"form=mup"};
    CHECK(finding_of(c, result).remark.empty());
    CHECK(finding_of(c, result).value == 0);
    CHECK(finding_of(c, result).verdict == ClaimVerdict::fails);
    result.better = "higher";  // the worst of the losses: at the grid's ends
    c.where = {"form=standard"};
    CHECK(finding_of(c, result).value != Approx(-1));
    c.where = {"form=none"};
    CHECK(test::refusal([&] { finding_of(c, result); }).find("no arm has form=none") != std::string::npos);
  }

  TEST_CASE_FIXTURE(Claims, "a study with a claim is registered, judged and listed" * test::needs("studies")) {
    std::string const text = R"(
name: length
study: {kind: softmax_length, keys: [16], sigma: [1, 2], correlation: [], width: [], variants: [], scores: 10000}
claim:
  says: the entropy is known
  source: nobody, 2026
  criteria: [{kind: formula, where: [quantity=entropy], within: 6}]
  cost: 5s
)";
    put("length.yaml", text);
    test::check_holds(listed({"--run", "--within", "1m"}), {"length: 0:05", "within 6 standard errors", "holds"});
    test::check_holds(test::get(output / "length/summary.md"), {"the entropy is known (nobody, 2026): holds", "before any cell had ended"});
    put("length.yaml", replaced(text, "scores: 10000", "scores: 20000"));
    test::check_holds(listed(), {"not run", "registered last (configuration)"});
    put("length.yaml", replaced(text, "quantity=entropy", "quantity=none"));
    run("length.yaml", {"--quiet"});
    test::check_holds(listed(), {"unclear", "0 rows of results.csv have quantity=none"});
    put("length.yaml", replaced(text, "within: 6", "within: 1.0e-9"));
    test::check_holds(listed(), {"not run", "registered last (criteria)"});
    run("length.yaml", {"--quiet"});
    test::check_holds(test::get(output / "length/summary.md"), {"the entropy is known (nobody, 2026): fails", "amended"});
    CHECK(test::occurrences(test::get(output / "length/summary.md"), "claim: ") == 1);
    listed({"--write"});
    test::check_holds(test::get(claims / "README.md"), {"Here: 1 fails", "amended", "when 2 cells had ended", "(expected: 5s)"});
    put("length.yaml", replaced(text, "within: 6}", "within: 6}, {kind: value, arm: a, at_least: 0}"));
    test::refuses({"check", claims / "length.yaml"}, 2, {"length.yaml:7:", "where: is needed in a study"});
  }

  TEST_CASE_FIXTURE(Claims, "--run trains what fits into the time, by the plan") {
    put("short.yaml", small);
    put("long.yaml", replaced(replaced(small, "ablation: c", "ablation: d"), "steps: 2,", "steps: 5000000,"));
    test::check_holds(listed({"--run", "--within", "1m"}), {"long: ", ", left out", "holds"});
    CHECK(!std::filesystem::exists(output / "d"));
  }

  TEST_CASE_FIXTURE(Claims, "wrong claims are refused by place") {
    auto const refused = [&](std::string const& from, std::string const& to, std::string const& word) {
      CAPTURE(to);
      test::put(folder / "c.yaml", replaced(small, from, to));
      test::refuses({"check", folder / "c.yaml"}, 2, {"c.yaml:", word});
    };
    refused("kind: equivalence", "kind: eqivalence", "did you mean 'equivalence'");
    refused("margin: 10", "at_least: 10", "margin: is needed by equivalence");
    refused("from: \"8\", ", "", "from: is needed by equivalence");
    refused("kind: equivalence", "kind: value", "from: is not used by value");
    refused("arm: \"16\"", "key: width", "key: is not used");
    refused("margin: 10", "margin: 0", "margin");
    refused("from: \"8\"", "from: \"9\"", "c.yaml:14:14: there is no arm '9'; arms: 8, 16");
    refused("margin: 10", "margin: 10, where: [keys=64]", "where: is not used");
    refused("margin: 10", "margin: 10, best: width", "best: is not used by equivalence");
    refused("kind: equivalence, arm: \"16\", from: \"8\", margin: 10", "kind: best_exponent, key: width, at_least: 0", "best: is needed");
    refused("kind: equivalence, arm: \"16\", from: \"8\", margin: 10", "kind: slope, key: depth, at_least: 0", "arm '8' has no number");
    refused("kind: equivalence, arm: \"16\", from: \"8\", margin: 10", "kind: value, where: [keys=64], at_least: 0", "rows of a study");
    auto const instead = [&](std::string const& criterion, std::string const& word) {
      refused("kind: equivalence, arm: \"16\", from: \"8\", margin: 10", criterion, word);
    };
    instead("kind: slope, key: width, where: [width=7], at_least: 0", "no arm has width=7");
    instead("kind: slope, key: width, where: [width=8], at_least: 0", "two different x");
    instead("kind: value, arm: \"8\", at_least: 9, at_most: 1", "at_least: is above at_most");
    refused("source: nobody, 2026", "predicts: nothing", "source: is missing");
    refused("says: width does nothing in two steps", "predicts: nothing", "says: is missing");
    refused("  criteria:", "  criterion:", "did you mean 'criteria'");
    refused("seeds: 1, selection", "seeds: 0, selection", "seeds");
    refused("margin: 10}", "margin: 10, reaches: 1}", "reaches: is not used");
    refused("margin: 10}", "margin: 10, below: true}", "below: is not used");
    put("plain.yaml", replaced(small, "  deviations", "  cost: soon\n  deviations"));
    test::refuses({"claims", "--claims", claims}, 2, {"plain.yaml", "cost", "found 'soon'"});
    put("plain.yaml", small.substr(0, small.find("claim:")));
    test::refuses({"claims", "--claims", claims}, 2, {"plain.yaml", "has no claim"});
    put("plain.yaml", "suite: s\ntasks: {a: b.yaml}\n");
    if (test::has_room("suites")) test::refuses({"claims", "--claims", claims}, 2, {"plain.yaml", "is a suite, which has no claim"});
    test::refuses({"claims", "nothing", "--claims", claims}, 2, {"nothing", "no such claim"});
    test::refuses({"claims", "--claims", folder / "none"}, 2, {"none", "holds no claims"});
    test::refuses({"claims", "--within", "1m"}, 2, {"--within", "--run"});
    test::refuses({"claims", "--run", "--within", "soon"}, 2, {"--within", "soon"});
  }
}
