#include "experiments/ablation/results.hpp"
#include "experiments/folder/csv.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/small_ablation.hpp"

// CSV, and `heed export` of what runs and ablations have measured: one CSV, a LaTeX table.

using namespace heed;
namespace fs = std::filesystem;
using Json = test::OrderedJson;

namespace {

std::string export_of(fs::path const& folder, std::string const& format, fs::path const& target) {
  auto const outcome = test::run_well({"export", folder.string(), "--format", format, target.string(), "--quiet"});
  CHECK((outcome.output.empty() && outcome.errors.empty()));
  return fs::is_regular_file(target) ? test::get(target) : "";
}

/// An ablation with an arm of which all trials diverge.
struct Bench : test::SmallAblation {
  Bench() {
    test::check_ends(run({"vary={model.attention: [scaled, hard]}", "add={100% lr_high: {train.optimizer.lr: 1.0e+9}}", "train.steps=20",
                          "train.log.every=5", "--quiet"}),
                     4);
  }
};

/// An ablation in memory: an arm that is fine, one that lacks a seed, one that diverged, one without any trial.
AblationResult worst_case() {
  AblationResult result;
  result.name = "worst_case 100%";
  result.metric = "validation.loss";
  result.seeds = {1, 2, 3};
  result.baseline = "a_b & {c}";
  double const infinity = std::numeric_limits<double>::infinity();
  auto const add = [&](std::string const& name, BySeed const& values, double mean, std::optional<Interval> interval) -> ArmResult& {
    auto& arm = result.arms.emplace_back();
    arm.name = name;
    arm.values = values;
    if (!values.empty()) arm.estimate = Estimate{.count = values.size(), .mean = mean, .deviation = 1, .interval = interval};
    return arm;
  };
  add("a_b & {c}", {{1, 2.0}, {2, 2.1}, {3, 2.2}}, 2.1, Interval{1.9, 2.3});
  auto const comparison = [](std::size_t seeds, double mean, std::optional<Interval> const& between, double p, Verdict verdict) {
    Comparison c;
    c.seeds = seeds, c.mean = mean, c.interval = between, c.p = p, c.verdict = verdict;
    return c;
  };
  add("50% #1 ~^\\", {{1, 1.0}, {2, 1.1}}, 1.05, Interval{-0.1, 2.2}).difference =
      comparison(2, -1.0, Interval{-1.5, -0.5}, 1.2e-5, Verdict::better);
  auto& diverged = add("größer ± 注意", {{1, infinity}, {2, 1.0}, {3, 1.0}}, infinity, std::nullopt);
  diverged.diverged = {1};
  diverged.difference = comparison(3, infinity, std::nullopt, 0.25, Verdict::unclear);
  add("$none", {}, 0, std::nullopt);
  result.failures.push_back({"50% #1 ~^\\", 3, "folder", "step 2: x < y_1, \"no\" 100 %", {}});
  for (Index const seed : {1, 2, 3}) result.missing.emplace_back("$none", seed);
  return result;
}

/// Compiles a document that holds the table and nothing else, if there is LaTeX; what it says if it cannot.
std::string compiled(std::string const& table) {
  if (std::system("pdflatex --version > /dev/null 2>&1") != 0) {
    MESSAGE("left out: there is no pdflatex to compile it");
    return "";
  }
  test::Folder const folder;
  test::put(folder / "table.tex", table);
  test::put(folder / "paper.tex", "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n\\input{table}\n\\end{document}\n");
  auto const command = "cd '" + folder.path().string() + "' && pdflatex -halt-on-error -interaction=nonstopmode paper > said 2>&1";
  return std::system(command.c_str()) == 0 ? "" : test::get(folder / "said");
}

}  // namespace

TEST_SUITE("export_results") {
  TEST_CASE("CSV with quotes, commas and line ends inside") {
    using Lines = std::vector<std::vector<std::string>>;
    CHECK(parse_csv("a,\"b,\"\"c\"\"\nd\",\r\n,e\n") == Lines{{"a", "b,\"c\"\nd", ""}, {"", "e"}});
    CHECK(parse_csv("") == Lines{});
  }

  TEST_CASE("a run as a CSV: a column per metric in order of appearance, a line per step, empty where a step has none") {
    test::Folder const folder;
    test::put(folder / "metrics.jsonl", R"({"step":0,"loss":0.1,"v":"NaN"}
{"step":1,"loss":"Infinity"}
{"step":2,"validation.loss":2.5,"loss":"-Infinity"}
{"step":5,"a,b":-0.0,"v":1e-300}
)");
    CHECK(export_of(folder.path(), "csv", folder / "metrics.csv") ==
          "step,loss,v,validation.loss,\"a,b\"\n0,0.1,NaN,,\n1,inf,,,\n2,-inf,,2.5,\n5,,1e-300,,-0\n");
    CHECK(csv_of({}) == "step\n");
    if (std::system("python3 -c 'import pandas' 2> /dev/null") != 0) {
      MESSAGE("left out: python3-pandas is not installed");
      return;
    }
    test::put(folder / "check.py", fmt::format("import math, pandas\nt = pandas.read_csv('{}', index_col='step')\n"
                                               "assert list(t.columns) == ['loss', 'v', 'validation.loss', 'a,b']\n"
                                               "assert t.loss[0] == 0.1 and t.loss[1] == math.inf and t.loss[2] == -math.inf\n"
                                               "assert t.v.isna().sum() == 3 and t['validation.loss'].count() == 1\n"
                                               "assert (t.dtypes == float).all()\n",
                                               (folder / "metrics.csv").string()));
    CHECK(std::system(fmt::format("python3 {}", (folder / "check.py").string()).c_str()) == 0);
  }

  TEST_CASE("an ablation as one CSV: a line per trial, with what its files say") {
    Bench const bench;
    auto const exported = [&] { return parse_csv(export_of(bench.small, "csv", bench.folder / "trials.csv")); };
    CsvRows const table = exported();
    REQUIRE(table.size() == 1 + 6);
    CHECK(std::set(table[0].begin(), table[0].end()).size() == table[0].size());  // no name twice
    auto const summary = bench.summary();
    std::size_t done = 0;
    for (auto const& line : csv_lines(table, "trials.csv")) {
      CAPTURE(line["folder"]);
      fs::path const run = bench.small / line["folder"];
      auto const rows = read_rows(run);
      CHECK(line["steps"] == std::to_string(rows.back().step));
      double best = std::numeric_limits<double>::infinity();
      for (Row const& row : rows)
        if (double const* const value = row.find("validation.loss")) best = std::min(best, *value);
      CHECK(std::stod(line["best"]) == best);
      for (auto const& [metric, series] : read_history(run))
        if (!metric.starts_with("time.")) CHECK(std::stod(line[metric]) == series.back().second);
      auto const& values = summary["arms"][done / 2]["values"];
      if (line["arm"] == "100% lr_high") {
        CHECK((line["state"] == "diverged" && line["value"] == "inf"));
        CHECK(line["message"].find("NaN") != std::string::npos);
        CHECK((line["train.optimizer.lr"] == "1.0e+9" && line["model.attention"].empty()));
      } else {
        auto const last = test::summary_of(run);
        CHECK((line["state"] == "done" && line["message"].empty() && line["model.attention"] == line["arm"]));
        CHECK(std::stod(line["value"]) == values[line["seed"]].get<double>());
        for (char const* key : {"validation.loss", "validation.accuracy", "time.seconds"}) CHECK(std::stod(line[key]) == last[key]);
      }
      ++done;
    }

    // What is missing has a line too.
    test::unseal(bench.small);
    test::change_json(bench.small / "summary.json", [](Json& json) {
      json["arms"][0]["folders"].erase(0);
      json["arms"][0]["values"].erase("1");
      json["missing"].push_back({{"arm", "scaled"}, {"seed", 1}});
    });
    CsvRows const again = exported();
    REQUIRE(again.size() == 1 + 6);
    CsvLine const missing(again, 1, "trials.csv");
    CHECK((missing["state"] == "missing" && missing["value"].empty() && missing["loss"].empty()));
    CHECK(again[2] == table[2]);
  }

  TEST_CASE_FIXTURE(Bench, "a format that does not fit a folder says which do") {
    auto const run = (small / summary()["trials"][0].get<std::string>()).string(), target = (folder / "x").string();
    test::refuses({"export", run, "--format", "latex", target}, 2,
                  {run, "is a run", "latex is for ablations", "csv, huggingface, tensorboard"});
    test::refuses({"export", small.string(), "--format", "huggingface", target}, 2, {"is an ablation", "csv, latex, tensorboard"});
    test::refuses({"export", runs.string(), "--format", "csv", target}, 2, {runs.string(), "neither a run nor an ablation"});
    test::refuses({"export", run, small.string(), "--format", "csv", target}, 2, {"one folder too many"});
    test::refuses({"export", run, "--format", "csv"}, 2, {"the target is required"});
    test::refuses({"export", small.string(), "--format", "csv", "/proc/nothing/x"}, 1, {"/proc/nothing/x", "cannot be written"});
    CHECK(!fs::exists(target));
    test::check_holds(test::run_heed({"export", "--help"}).output,
                      {"\n    csv          of runs and ablations: ", "\n    huggingface  of runs: ", "\n    latex        of ablations: ",
                       "\n    tensorboard  of runs and ablations: "});
  }

  TEST_CASE("the LaTeX table says what is best, infinite, failed and missing, with every special character") {
    auto const table = latex_table(worst_case());
    test::check_holds(table, {"\\label{tab:worst_case-100-}", "a\\_b \\& \\{c\\} & 3 & $2.1000$ & $[1.9000, 2.3000]$ &  &  & baseline \\\\",
                              "50\\% \\#1 \\textasciitilde{}\\textasciicircum{}\\textbackslash{} & 2/3 & $\\mathbf{1.0500}$ & $[-0.1000, "
                              "2.2000]$ & $-1.0000 \\pm 0.5000$ & $1.2 \\cdot 10^{-5}$ & better \\\\",
                              "größer $\\pm$ U+6CE8U+610F & 3 & $\\infty$ & none: infinite & $+\\infty$ & $0.25$ & unclear \\\\",
                              "\\$none & 0/3 & -- &  &  &  &  \\\\", "diverged with seed 1",
                              "seed 3 failed: step 2: x $<$ y\\_1, ''no'' 100\\,\\%.", "\\$none: seeds 1, 2, 3 missing."});
    for (std::size_t i = 0, open = 0; i < table.size(); ++i) {  // braces are in pairs
      if (table[i] == '\\')
        ++i;
      else if (table[i] == '{')
        ++open;
      else if (table[i] == '}')
        REQUIRE(open-- > 0);
      if (i + 1 >= table.size()) CHECK(open == 0);
    }
    CHECK(compiled(table) == "");
  }

  TEST_CASE("names that LaTeX would take for an argument stay names") {
    auto result = worst_case();
    result.arms[0].name = "[0, 50]", result.arms[1].name = "*";
    auto const table = latex_table(result);
    test::check_holds(table, {"    {[}0, 50] & ", "\\\\\n    {*} & ", "mean is bold, whatever its verdict"});
    CHECK(compiled(table) == "");
  }

  TEST_CASE_FIXTURE(Bench, "the LaTeX table of an ablation has the numbers of its summary.md") {
    auto const table = export_of(small, "latex", folder / "small.tex");
    INFO(table);
    auto const lines = test::get(small / "summary.md");
    for (std::string const arm : {"scaled", "hard"}) {
      auto const at = lines.find("| " + arm + " | ");
      REQUIRE(at != std::string::npos);
      auto const begin = at + arm.size() + 5;
      auto const mean = lines.substr(begin, lines.find(' ', begin) - begin);
      CHECK_MESSAGE(table.find(mean) != std::string::npos, mean);
    }
    CHECK(compiled(table) == "");
  }
}
