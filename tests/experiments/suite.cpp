// Suites: the estimator against independent computations, a small suite from file to page, and refusals.

#include "experiments/suite/suite.hpp"

#include "experiments/folder/csv.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"

TEST_SUITE("suite") {
  using namespace heed;
  using doctest::Approx;

  namespace {

  constexpr std::size_t tasks = 6;

  /// Scores of an arm, task by task: higher in each task than in the one before.
  std::vector<double> planted(std::uint64_t arm, std::size_t seeds) {
    std::vector<double> scores;
    std::uint64_t x = 1 + arm;
    for (std::size_t i = 0; i < tasks * seeds; ++i) {
      x = (x * 1103515245 + 12345) % (1ULL << 31);
      scores.push_back((static_cast<double>(i / seeds) + static_cast<double>(x) / 2147483648.0) / 7);
    }
    return scores;
  }

  /// Counts for each value how many are below and above it, and takes the mean of those in the middle; for distinct values.
  double middle_mean(std::vector<double> const& values) {
    auto const cut = std::floor(0.25 * static_cast<double>(values.size()));
    double sum = 0, count = 0;
    for (double const value : values) {
      double below = 0, above = 0, same = 0;
      for (double const other : values) (other < value ? below : other > value ? above : same) += 1;
      for (double k = 0; k < same; ++k)  // each of the equal ones at its own rank, 1/same of it
        if (below + k >= cut && above + same - 1 - k >= cut) sum += value / same, count += 1 / same;
    }
    return sum / count;
  }

  std::string const base = R"(
name: base
data: {kind: copy, length: 2, vocabulary: 4, validation: 8}
model: {kind: gpt, layers: 1, heads: 2, width: 8, context: 6}
train: {steps: 2, evaluate: {every: 2}}
)";
  std::string const small = R"(suite: s
base: base.yaml
set: {train.batch: 2}
tasks:
  copy: {data.kind: copy}
  reverse: {data.kind: reverse, train.batch: 4}
vary: {model.width: [8, 16]}
seeds: 2
metric: validation.accuracy
)";

  /// A member of a suite of files.
  std::string member(std::string const& name, std::string const& more = "") {
    return "ablation: " + name + "\nbase: base.yaml\nmetric: validation.accuracy\nvary: {model.width: [8, 16]}\nseeds: 2\n" + more;
  }

  struct SuiteBench {
    test::Folder folder;
    std::string file = (folder / "s.yaml").string(), output = (folder / "runs").string();

    explicit SuiteBench(std::string const& text = small) {
      test::put(folder / "base.yaml", base);
      test::put(folder / "s.yaml", text);
    }
    std::string call(std::string const& command, std::vector<std::string> const& more = {}) const {
      return test::run_well(test::joined({command, file, "--output", output}, more)).output;
    }
    CsvRows results() const { return parse_csv(test::get(folder / "runs/s/results.csv")); }
  };

  }  // namespace

  TEST_CASE("interquartile means: SciPy's, and a count of ranks") {
    // scipy.stats.trim_mean(scores, proportiontocut=0.25, axis=None) of these tables.
    std::vector<std::pair<std::size_t, double>> const published{
        {1, 0.427376951124253}, {2, 0.4216019114967258}, {3, 0.4164165695530495}, {5, 0.42709073084240246}, {7, 0.4411248602789476}};
    for (auto const& [seeds, mean] : published) {
      CHECK(std::abs(interquartile_mean(planted(0, seeds)) - mean) < 1e-12);
      CHECK(std::abs(interquartile_mean(planted(0, seeds)) - middle_mean(planted(0, seeds))) < 1e-12);
    }
    std::vector<double> values{0.5, 0.25, 0.5, 1, 0.5, 0.25, 0};
    for (; !values.empty(); values.pop_back()) CHECK(std::abs(interquartile_mean(values) - middle_mean(values)) < 1e-12);
    CHECK(interquartile_mean({1, -std::numeric_limits<double>::infinity(), 3, 2}) == 1.5);  // one that diverged
  }

  TEST_CASE("intervals: percentiles of a stratified bootstrap, within Monte Carlo error") {
    constexpr std::size_t seeds = 5;
    auto const a = planted(0, seeds), b = planted(1, seeds);
    auto const estimates = suite_estimates({a, b}, seeds, 0);
    CHECK(std::abs(estimates[1].mean - 0.4257017949546155) < 1e-12);
    CHECK(std::abs(estimates[1].difference - (0.4257017949546155 - 0.42709073084240246)) < 1e-12);
    REQUIRE((estimates[0].interval && estimates[1].interval && estimates[1].difference_interval));
    CHECK(!estimates[0].difference_interval);

    // NumPy's percentiles over 400,000 resamples; the tolerance is about four standard errors, √(p (1 − p)/50,000)/density.
    for (auto const& [found, low, high, tolerance] : {std::tuple(*estimates[0].interval, 0.41340025, 0.44399653, 5e-4),
                                                      {*estimates[1].interval, 0.41092533, 0.4436799, 5e-4},
                                                      {*estimates[1].difference_interval, -0.02721149, 0.02317969, 7e-4}}) {
      CHECK(std::abs(found.low - low) < tolerance);
      CHECK(std::abs(found.high - high) < tolerance);
    }
  }

  TEST_CASE("differences are paired by seed; no interval of one seed or with infinite scores") {
    auto const a = planted(0, 5);
    auto b = a;
    for (double& value : b) value += 0.125;
    auto const paired = suite_estimates({a, b}, 5, 0, 1000);
    CHECK(paired[1].difference == Approx(0.125).epsilon(1e-12));
    REQUIRE(paired[1].difference_interval);
    CHECK(paired[1].difference_interval->low == Approx(0.125).epsilon(1e-12));
    CHECK(paired[1].difference_interval->high == Approx(0.125).epsilon(1e-12));
    CHECK(paired[1].interval->half_width() > 0.01);
    auto const again = suite_estimates({b, a}, 5, 1, 1000);
    CHECK(again[0].interval->low == paired[1].interval->low);
    CHECK(!suite_estimates({planted(0, 1)}, 1, 0)[0].interval);
    for (double& value : b) value = -std::numeric_limits<double>::infinity();
    CHECK(!suite_estimates({a, b}, 5, 0, 1000)[1].interval);
  }

  TEST_CASE_FIXTURE(SuiteBench, "a small suite, from its file to its page") {
    test::check_holds(call("check"), {"ablation: copy", "ablation: reverse", "set: {train.batch: 2, data.kind: copy}",
                                      "set: {data.kind: reverse, train.batch: 4}"});
    test::check_holds(call("plan"), {"runs/s", "reverse  2     4", "about 0:0"});
    CHECK(!std::filesystem::exists(folder / "runs"));
    test::check_holds(call("run"), {"Over all tasks, differences to 8", "Means by task", "over 2 tasks × 2 seeds",
                                    "Warning: 2 seeds: ", "runs/s/report.html"});
    test::check_holds(test::get(folder / "runs/s/report.html"),
                      {">Suite</p>", "Paired differences by task", "<svg role=", "tokens per second",
                       "Warning: 2 seeds: ", "Differences of validation.accuracy to 8 within"});
    for (char const* name : {"figures/costs.svg", "figures/interquartile_mean.pdf", "figures/tasks.svg", "copy/report.html", "summary.md"})
      CHECK(std::filesystem::exists(folder / "runs/s" / name));
    test::check_holds(test::get(folder / "runs/s/summary.md"), {"intervals are too narrow; take five or more"});
    CHECK(test::json_of(folder / "runs/s/summary.json")["tables"][1]["rows"][0].dump() == R"(["arm","copy","reverse"])");

    // What is pooled is what the ablations measured.
    auto const rows = results();
    std::vector<double> pooled;
    for (char const* task : {"copy", "reverse"}) {
      auto const summary = test::json_of(folder / "runs/s" / task / "summary.json");
      for (auto const& value : summary["arms"][1]["values"]) pooled.push_back(value.get<double>());
    }
    REQUIRE(pooled.size() == 4);
    auto const line = std::ranges::find_if(rows, [](auto const& row) { return row[1] == "16" && row[3] == "interquartile_mean"; });
    REQUIRE(line != rows.end());
    CHECK(std::abs(std::stod((*line)[4]) - middle_mean(pooled)) < 1e-12);
    CHECK(std::ranges::count(rows, "score", [](auto const& row) { return row[3]; }) == 8);

    // Again: nothing is trained, and the bits are the same.
    CHECK(call("run", {"--quiet"}).empty());
    CHECK(results() == rows);
    // A table with a hole is pooled without that seed.
    auto const suite = load_suite(file, {"seeds=4"}, {.output = output, .data = {}, .config_folder = {}});
    test::check_holds(write_suite(suite), {"2 seeds (of 4: those that every arm has finished in every task)"});
  }

  TEST_CASE_FIXTURE(SuiteBench, "an arm of which no trial has finished has no number of parameters") {
    test::check_ends(test::run_heed({"run", file, "--output", output, "--quiet", "vary={train.optimizer.lr: [0.001, 1.0e+20]}",
                                     "train.log.every=1", "train.steps=20"}),
                     4);
    std::size_t unknown = 0;
    for (auto const& row : results())
      if (row[3] == "parameters" && row[4] == "NaN") ++unknown;
    CHECK(unknown == 3);  // in both tasks, and over them
  }

  TEST_CASE_FIXTURE(SuiteBench, "changes by the command line leave each task its own keys") {
    for (std::string const change : {"set={train.steps: 4}", "data.kind=sort", "seeds=3"}) {
      CAPTURE(change);
      for (auto const& task : load_suite(file, {change, "train.clip=2.5"}, {.output = output, .data = {}, .config_folder = {}}).tasks) {
        CHECK(task.ablation.base.root.find("data.kind")->text == task.name);
        CHECK(task.ablation.base.root.find("train.clip")->text == "2.5");
      }
    }
  }

  TEST_CASE("tasks may be files of ablations, which are trained once") {
    SuiteBench const bench("suite: s\ntasks: {one: a.yaml, two: b.yaml}\n");
    test::put(bench.folder / "a.yaml", member("a"));
    test::put(bench.folder / "b.yaml", member("b", "set: {data.kind: reverse}\n"));
    test::run_well({"run", (bench.folder / "a.yaml").string(), "--output", bench.output, "--quiet"});
    auto const trained = test::get(bench.folder / "runs/a/results.csv");
    bench.call("run", {"--quiet"});
    CHECK(test::get(bench.folder / "runs/a/results.csv") == trained);
    CHECK(std::filesystem::exists(bench.folder / "runs/b/results.csv"));
    CHECK(std::ranges::count(bench.results(), "two", [](auto const& row) { return row[0]; }) == 11);
  }

  TEST_CASE("the suites that come with heed are sound") {
    for (auto const& entry : std::filesystem::directory_iterator("configs/suites")) {
      if (entry.path().extension() != ".yaml") continue;
      CAPTURE(entry.path().string());
      auto const suite = load_suite(entry.path(), {}, {});
      CHECK(suite.tasks.size() >= 4);
      CHECK(suite.tasks.front().ablation.seeds.size() >= 5);
    }
  }

  TEST_CASE("wrong suites are refused by place") {
    auto const refused = [&](std::string const& from, std::string const& to, std::string const& place, std::string const& word) {
      CAPTURE(to);
      auto text = small;
      REQUIRE(text.find(from) != text.npos);
      text.replace(text.find(from), from.size(), to);
      SuiteBench const bench(text);
      test::refuses({"check", bench.file}, 2, {"s.yaml:" + place, word});
    };
    refused("metric: validation.accuracy", "metric: validation.loss", "9:9: ", "validation.accuracy");
    refused("{data.kind: copy}", "nothing.yaml", "5:9: ", "there is no file");
    refused("{data.kind: copy}", "[a]", "5:9: ", "copy wants keys of a run");
    refused("data.kind: copy", "data.kind: cpoy", "5:21: ", "did you mean 'copy'");
    refused("data.kind: copy", "datta: copy", "5:17: ", "did you mean 'data'");
    refused("  copy: {", "  ..: {", "5:3: ", "'..' is not the name of a folder");
    refused("  copy: {", "  results.csv: {", "5:3: ", "results.csv is a file of the suite");
    refused("seeds: 2", "seeds: 2\nclaim: {says: a}", "9:1: ", "claim: belongs to an ablation");
    refused("suite: s", "suite: ..", "1:8: ", "'..' is not the name of a folder");
    refused("tasks:\n", "tusks:\n", "", "tasks");
    refused("vary: ", "vray: ", "7:1: ", "did you mean 'vary'");

    auto const differ = [&](std::string const& b, std::string const& word) {
      CAPTURE(b);
      SuiteBench const bench("suite: s\ntasks:\n  one: a.yaml\n  two: b.yaml\n");
      test::put(bench.folder / "a.yaml", member("a"));
      test::put(bench.folder / "b.yaml", b);
      test::refuses({"run", bench.file, "--output", bench.output}, 2, {"s.yaml:4:3: tasks: ", word});
    };
    auto const with = [&](std::string const& from, std::string const& to) {
      auto text = member("b");
      return text.replace(text.find(from), from.size(), to);
    };
    differ(with("[8, 16]", "[8, 24]"), "two has no arm '16' (model.width: 16), which one has");
    differ(with("[8, 16]", "[8]"), "two has no arm '16'");
    differ(member("b", "add: {more: {model.width: 32}}\n"), "one has no arm 'more' (model.width: 32), which two has");
    differ(member("b", "baseline: 16\n"), "two has no arm '8' (model.width: 8; baseline)");
    differ(with("seeds: 2", "seeds: 3"), "has the seeds 1, 2, 3, but one has 1, 2");
    differ(with("validation.accuracy", "validation.exact"),
           "compares validation.exact (last), but one compares validation.accuracy (last)");
    differ(member("b", "at: best\n"), "compares validation.accuracy (best)");
    differ(member("a"), "has the folder of one");

    SuiteBench const unused("suite: s\ntasks: {one: base.yaml}\nseeds: 3\n");
    test::refuses({"check", unused.file}, 2, {"s.yaml:3:1: seeds: has no effect"});
    SuiteBench const bench;
    test::refuses({"run", bench.file, "--shard", "0/2"}, 2, {"shard: is for ablations"});
    test::refuses({"plan", bench.file, "--slurm"}, 2, {"--slurm"});
  }
}
