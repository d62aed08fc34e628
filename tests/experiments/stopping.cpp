#include "tests/experiments/said.hpp"
#include "tests/experiments/small_ablation.hpp"

// An ablation whose seeds are given out as evidence decides, through the real program.

using namespace heed;
namespace fs = std::filesystem;

TEST_SUITE("stopping") {
  TEST_CASE("losers get no more seeds, and the report says who stopped when; a report anew says the same") {
    test::SmallAblation const bench;
    test::put(bench.folder / "base.yaml", test::small_base);
    test::put(bench.folder / "small.yaml",
              "ablation: small\nbase: base.yaml\nvary: {train.optimizer.lr: [1.0e-2, 9.0e-3, 1.0e-6]}\nseeds: 10\nstop_losers: true\n");
    auto const outcome = test::run_well(bench.command());
    auto const summary = bench.summary();
    CHECK(summary["arms"][2]["values"].size() < 10);
    CHECK(summary["arms"][2]["values"].size() >= 7);
    CHECK(summary["arms"][0]["values"].size() == 10);
    CHECK(summary["trials_done"] == summary["trials_of"]);
    auto const ended = summary["arms"][2]["values"].size();
    auto const stopped = fmt::format("stop_losers: no more seeds for 1.0e-6 after {}", ended);
    test::check_holds(outcome.output, {stopped + "\n", "may be looked at after every pair"});
    CHECK(outcome.output.find("paired t") == outcome.output.npos);
    CHECK(summary["trials_of"] == 20 + ended);
    test::check_holds(test::run_well(test::as("plan", bench.command())).output, {fmt::format("{0} runs ({0} done already)", 20 + ended)});
    fs::remove(bench.small / "summary.json");
    test::run_well({"report", bench.small.string()});
    auto again = bench.summary();
    CHECK(again["arms"] == summary["arms"]);
    CHECK(again["sentences"] == summary["sentences"]);
    for (auto const& [name, time] : bench.finished())  // as if seeds 9 and 10 were not given out yet
      if (name.find("-seed9-") != name.npos || name.find("-seed10-") != name.npos) fs::remove_all(bench.small / name);
    fs::remove(bench.small / "summary.json");
    test::run_well({"report", bench.small.string()});
    again = bench.summary();
    CHECK(std::ranges::count(again["sentences"], test::Json(stopped)) == 1);
    CHECK(again["trials_of"] == summary["trials_of"]);
    CHECK(again["trials_done"] == 16 + ended);
    CHECK(again["seeds"].size() == 10);
    test::check_holds(test::run_well(test::as("plan", bench.command({"seeds=6"}))).output,
                      {"at most 6 paired seeds: evidence needs 7", "cannot show any difference at p ≤ 0.05; 7 seeds can"});
    test::refuses(bench.command({"shard=0/2"}), 2, {"shard: does not go with stop_losers"});
  }
}
