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
    test::check_holds(outcome.output, {"stop_losers: no more seeds for 1.0e-6 after ", "may be looked at after every pair"});
    fs::remove(bench.small / "summary.json");
    test::run_well({"report", bench.small.string()});
    auto again = bench.summary();
    CHECK(again["arms"] == summary["arms"]);
    CHECK(again["sentences"] == summary["sentences"]);
    test::refuses(bench.command({"shard=0/2"}), 2, {"shard: does not go with stop_losers"});
  }
}
