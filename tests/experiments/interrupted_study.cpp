#include <cstddef>
#include <filesystem>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "experiments/run/csv.hpp"
#include "experiments/study/softmax_scaling.hpp"
#include "tests/experiments/unsealed.hpp"
#include "tests/program.hpp"

TEST_SUITE("interrupted_study") {
  using namespace heed;

  TEST_CASE("cells that were kept are neither measured again nor changed; what is measured in parts is one measurement") {
    SoftmaxScalingSettings settings;
    settings.d_k = {4, 64};
    settings.keys = {2, 10};
    settings.distribution = {"logits", "gaussian"};
    settings.precision = 0.2;
    settings.layers = 0;
    auto const whole = measure_grid(settings, {});
    REQUIRE(whole);
    auto const csv = report(settings, *whole).csv;

    StudyContext again;
    std::vector<Cell> first(whole->begin(), whole->begin() + 9);  // three of eight cells, at three scales each
    again.kept = report(settings, first).csv;
    auto const resumed = measure_grid(settings, again);
    REQUIRE(resumed);
    CHECK(report(settings, *resumed).csv == csv);

    first.front().values[0]->mean = 17;
    again.kept = report(settings, first).csv;
    CHECK(measure_grid(settings, again)->front().values[0]->mean == 17);
  }

  TEST_CASE("an interrupted study has a page of what it has, and comes to what an uninterrupted one comes to") {
    test::Folder const folder;
    auto const runs = (folder / "runs").string();
    test::put(folder / "study.yaml",
              "name: small\nstudy: {kind: softmax_scaling, d_k: [64, 128, 256], keys: [4], precision: 0.3, layers: 0}\n");
    std::vector<std::string> const run{"run", folder / "study.yaml", "--output", runs, "--quiet", "--jobs", "2"};
    REQUIRE(test::run_heed(run).code == 0);
    auto const results = folder / "runs/small/results.csv", summary = folder / "runs/small/summary.json";
    auto const page = folder / "runs/small/report.html";
    auto const whole = test::get(results);

    // What a process leaves that is killed within the second law.
    std::string part;
    std::size_t kept = 0;
    for (auto const& line : parse_csv(whole)) {
      if (line[0] == "gaussian" && line[2] == "128") break;
      part += csv_line(line), ++kept;
    }
    CHECK(kept > 100);
    CHECK(part.size() < whole.size() / 2);
    test::put(results, part);
    test::unseal(folder / "runs/small");
    auto json = nlohmann::ordered_json::parse(test::get(summary));
    json["finished"] = false;
    json["time.seconds"] = 1000;
    test::put(summary, json.dump());
    std::filesystem::remove(page);
    auto const shown = test::run_heed({"report", "small", "--output", runs});
    INFO(shown.errors);
    CHECK(shown.code == 0);
    CHECK(test::get(page).find("Saturation over d_k") != std::string::npos);

    REQUIRE(test::run_heed(run).code == 0);
    CHECK(test::get(results) == whole);
    auto const finished = nlohmann::ordered_json::parse(test::get(summary));
    CHECK(finished["finished"] == true);
    CHECK(finished["time.seconds"] > 1000);

    test::put(results, "distribution,scale,d_k,keys,quantity,mean,standard_error,theory\nlogits,none,1,4,trace,x,0.1,\n");
    test::put(summary, json.dump());
    test::refuses({"run", folder / "study.yaml", "--output", runs}, 3, {"results.csv: line 2"});
  }
}
