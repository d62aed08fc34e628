#include <cstdlib>
#include <limits>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "experiments/metric/info.hpp"
#include "experiments/run/csv.hpp"
#include "experiments/run/record.hpp"
#include "tests/columns.hpp"
#include "tests/program.hpp"

// What metrics say of themselves, and metrics.csv beside metrics.jsonl.

TEST_SUITE("metrics") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  double const nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

  constexpr char const* config = R"(
name: short
data: {kind: recall, pairs: 2, keys: 4, values: 4, validation: 20}
model: {kind: gpt, layers: 1, heads: 1, width: 8, context: 8, position: rotary}
train:
  steps: 30
  batch: 2
  ema: 0.9
  evaluate: {every: 20, lengths: [8, 12]}
  checkpoint: {every: 5}
probes: {every: 15, attention: [entropy, max_weight, distance, first_token, score_mean, score_variance, sink_rate, induction], activations: [rms, kurtosis], curvature: [sharpness], gradients: [norm_by_layer, norm_by_parameter, scores, softmax_jacobian_trace, softmax_jacobian_norm]}
)";

  std::string table(fs::path const& run) { return test::equal_columns(test::get(run / "metrics.csv")); }

  }  // namespace

  TEST_CASE("a metric says which direction is better, and its unit") {
    struct Case {
      char const *name, *unit;
      std::optional<Better> better;
    };
    for (auto const& each : std::initializer_list<Case>{{"loss", "nat", Better::lower},
                                                        {"validation.loss", "nat", Better::lower},
                                                        {"validation.ema.loss", "nat", Better::lower},
                                                        {"validation.excess", "nat", Better::lower},
                                                        {"validation.loss.length256", "nat", Better::lower},
                                                        {"validation.ema.loss.length256", "nat", Better::lower},
                                                        {"validation.exact", "", Better::higher},
                                                        {"validation.accuracy", "", Better::higher},
                                                        {"validation.accuracy.far", "", Better::higher},
                                                        {"time.tokens_per_second", "1/s", Better::higher},
                                                        {"memory.peak", "B", Better::lower},
                                                        {"grad_norm", "", std::nullopt},
                                                        {"probe.attention.entropy.layer0.head1", "nat", std::nullopt},
                                                        {"probe.attention.sink_rate", "", std::nullopt},
                                                        {"probe.attention.sink_rate.layer0", "", std::nullopt},
                                                        {"probe.curvature.sharpness", "", Better::lower}}) {
      CAPTURE(each.name);
      auto const* const info = find_metric(each.name);
      REQUIRE(info != nullptr);
      CHECK(info->unit == each.unit);
      CHECK(info->better == each.better);
    }
    CHECK(find_metric("validation.accuracy.far")->name == "validation.accuracy.*");
    CHECK(find_metric("probe.gradients.norm.blocks.0.mlp.up.weight")->name == "probe.gradients.norm.*.*");
    for (char const* name : {"", "*", "validation", "validation.accuracy.", "validation.exct", "probe.attention.entropy.layer0"}) {
      CAPTURE(name);
      CHECK(find_metric(name) == nullptr);
    }
    CHECK(with_unit("validation.loss") == "validation.loss (nat)");
    CHECK(with_unit("validation.exact") == "validation.exact");
  }

  TEST_CASE("whatever a run records is declared, and declared once") {
    std::set<std::string> names;
    for (auto const& info : Registry<MetricInfo>::all()) {
      CAPTURE(info.name);
      CHECK(names.insert(info.name).second);
      CHECK(!info.help.empty());
    }
    test::Folder const folder;
    test::put(folder / "short.yaml", config);
    auto const outcome = test::run_heed({"run", (folder / "short.yaml").string(), "--output", folder.path().string(), "--quiet"});
    INFO(outcome.errors);
    REQUIRE(outcome.code == 0);
    for (auto const& of_name : read_history(folder / "short")) {
      auto const& name = of_name.first;
      CAPTURE(name);
      CHECK(find_metric(name) != nullptr);
    }
  }

  TEST_CASE("metrics.csv: a column a metric in order of appearance, a row a step, empty where a step has none") {
    test::Folder const folder;
    auto const jsonl = folder / "metrics.jsonl", csv = folder / "metrics.csv";
    std::vector<Row> const rows{{0, {{"loss", 1.5}, {"v", nan}}},
                                {1, {{"loss", infinity}}},
                                {2, {{"validation.loss", 0.1}, {"loss", -infinity}}},
                                {5, {{"a,b", -0.0}, {"v", 1e-300}}}};
    std::string const whole = "step,loss,v,validation.loss,\"a,b\"\n0,1.5,NaN,,\n1,inf,,,\n2,-inf,,0.1,\n5,,1e-300,,-0\n";
    for (std::int64_t cut = 0; cut <= 6; ++cut) {  // however often it is opened again, and whatever it held
      CAPTURE(cut);
      Metrics metrics(jsonl, cut);
      MetricsTable table(jsonl);
      for (Row const& row : rows) {
        if (row.step < cut) continue;
        metrics.write(row);
        table.write(row);
      }
      CHECK(test::get(csv) == whole);
      test::put(csv, "torn");
    }
    fs::remove(jsonl);
    MetricsTable const none(jsonl);
    CHECK(test::get(csv) == "step\n");
  }

  TEST_CASE("metrics.csv of a run that was killed and went on is that of one never interrupted") {
    test::Folder const whole, cut;
    for (auto const* folder : {&whole, &cut}) test::put(*folder / "short.yaml", config);
    auto const command = [](test::Folder const& folder) {
      return std::vector<std::string>{
          "run", (folder / "short.yaml").string(), "--output", folder.path().string(), "--quiet", "train.log.every=5"};
    };
    CHECK(test::run_heed(command(whole)).code == 0);
    for (int step : {6, 17}) {
      test::Program const program(command(cut));
      program.wait_until([&] { return last_step(cut / "short").value_or(-1) >= step; });
      program.send(SIGKILL);
    }
    CHECK(test::run_heed(command(cut)).code == 0);
    CHECK(table(cut / "short") == table(whole / "short"));
    CHECK(table(whole / "short").starts_with("step,validation.loss,validation.accuracy,"));
  }

  TEST_CASE("pandas reads a run's table with its numbers, NaN and infinities") {
    if (std::system("python3 -c 'import pandas' 2> /dev/null") != 0) {
      MESSAGE("skipped: python3-pandas is not installed");
      return;
    }
    test::Folder const folder;
    Metrics metrics(folder / "metrics.jsonl", 0);
    MetricsTable table(folder / "metrics.jsonl");
    for (Row const& row : {Row{0, {{"loss", 0.1}, {"w", nan}}}, Row{1, {{"loss", infinity}, {"validation.loss", 2.5}}}}) {
      metrics.write(row);
      table.write(row);
    }
    auto const script = fmt::format(
        "import math, pandas\nt = pandas.read_csv('{}', index_col='step')\nassert list(t.columns) == ['loss', 'w', 'validation.loss']\n"
        "assert t.loss[0] == 0.1 and t.loss[1] == math.inf and t.w.isna().all() and math.isnan(t['validation.loss'][0])\n"
        "assert (t.dtypes == float).all()\n",
        (folder / "metrics.csv").string());
    test::put(folder / "check.py", script);
    CHECK(std::system(fmt::format("python3 {}", (folder / "check.py").string()).c_str()) == 0);
  }
}
