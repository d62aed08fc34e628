#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/program.hpp"

// An ablation, through the real program: its trials are processes, its tables are those of an undisturbed one however often it was killed,
// and a trial that fails leaves the others whole.

using namespace heed;
namespace fs = std::filesystem;

namespace {

constexpr char const* base = R"(
data: {kind: recall, pairs: 2, keys: 4, values: 4, validation: 20}
model: {kind: gpt, layers: 1, heads: 2, width: 16, context: 8}
train:
  steps: 40
  batch: 4
  evaluate: {every: 20}
  checkpoint: {every: 10}
)";

constexpr char const* ablation = R"(
ablation: small
base: base.yaml
vary: {model.attention: [scaled, additive, hard]}
seeds: 2
baseline: scaled
)";

using Arguments = std::vector<std::string>;

struct Bench {
  test::Folder folder;
  fs::path runs = folder / "runs";
  fs::path small = runs / "small";

  Bench() {
    test::put(folder / "base.yaml", base);
    test::put(folder / "small.yaml", ablation);
  }
  Arguments command(Arguments const& more = {}) const {
    Arguments all{"run", (folder / "small.yaml").string(), "--output", runs.string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  test::Outcome run(Arguments const& more = {}) const { return test::run_heed(command(more)); }
  nlohmann::json summary() const { return nlohmann::json::parse(test::get(small / "summary.json")); }
  /// results.csv without what may differ between equal runs.
  std::vector<std::string> rows() const {
    std::vector<std::string> result;
    std::ifstream file(small / "results.csv");
    for (std::string line; std::getline(file, line);) {
      if (line.find(",time.") == std::string::npos && line.find(",memory.") == std::string::npos) result.push_back(line);
    }
    return result;
  }
  /// When each finished trial was finished.
  std::map<std::string, fs::file_time_type> finished() const {
    std::map<std::string, fs::file_time_type> result;
    std::error_code missing;
    for (auto const& entry : fs::directory_iterator(small, missing)) {
      if (fs::exists(entry.path() / "summary.json")) result[entry.path().filename()] = fs::last_write_time(entry.path() / "summary.json");
    }
    return result;
  }
};

}  // namespace

TEST_SUITE("ablation") {
  TEST_CASE("an ablation leaves its tables, and a second call runs nothing again") {
    Bench const bench;
    auto const outcome = bench.run();
    INFO(outcome.errors);
    CHECK(outcome.code == 0);
    CHECK(outcome.output.find("additive") != std::string::npos);
    auto const summary = bench.summary();
    CHECK(summary["arms"].size() == 3);
    CHECK(summary["seeds"] == nlohmann::json::array({1, 2}));
    CHECK(summary["failures"].empty());
    CHECK(summary["missing"].empty());
    CHECK(summary["warnings"].size() == 1);  // two seeds cannot show anything
    auto const& arm = summary["arms"][1];
    CHECK(arm["name"] == "additive");
    CHECK(arm["values"].size() == 2);
    CHECK(arm["folders"].size() == 2);
    CHECK(arm["difference"]["p"] == 0.5);
    CHECK(arm["mean"].get<double>() ==
          doctest::Approx((arm["values"]["1"].get<double>() + arm["values"]["2"].get<double>()) / 2).epsilon(1e-14));
    CHECK(bench.rows().front() == "arm,model.attention,seed,step,metric,value");
    CHECK(test::get(bench.small / "summary.md").find("| additive |") != std::string::npos);

    auto const rows = bench.rows();
    auto const before = bench.finished();
    CHECK(before.size() == 6);
    CHECK(bench.run().code == 0);
    CHECK(bench.finished() == before);
    CHECK(bench.rows() == rows);

    // A changed file runs what changed, and only that.
    CHECK(bench.run({"vary={model.attention: [scaled, dot]}"}).code == 0);
    auto const after = bench.finished();
    CHECK(after.size() == 8);
    for (auto const& [name, time] : before) CHECK(after.at(name) == time);
    CHECK(bench.summary()["arms"][1]["name"] == "dot");
  }

  TEST_CASE("killed at any moment, parent alone or with its children, it ends as if it never was") {
    Bench const whole, cut;
    CHECK(whole.run({"--quiet"}).code == 0);
    std::mt19937 random(1);
    std::map<std::string, fs::file_time_type> done;
    for (int i = 0; i < 5; ++i) {
      test::Program const program(cut.command({"--quiet"}), [] { ::setpgid(0, 0); });
      std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution(5, 150)(random)));
      if (i % 2 == 0)
        program.send(SIGKILL);
      else
        program.send_to_group(SIGKILL);
      auto const now = cut.finished();
      for (auto const& [name, time] : done) CHECK(now.at(name) == time);
      done = now;
    }
    auto const outcome = cut.run({"--quiet"});
    INFO(outcome.errors);
    CHECK(outcome.code == 0);
    CHECK(cut.rows() == whole.rows());
    auto const now = cut.finished();
    for (auto const& [name, time] : done) CHECK(now.at(name) == time);
  }

  TEST_CASE("an arm that fails leaves the others whole, is named with step and operation, and is tried again") {
    Bench const bench;
    auto const outcome = bench.run({"vary={train.optimizer.lr: [0.001, 1.0e+9]}", "baseline=0.001", "train.log.every=1"});
    CHECK(outcome.code == 4);
    CHECK(outcome.errors.find("failed: step ") != std::string::npos);
    auto const summary = bench.summary();
    CHECK(summary["arms"][0]["values"].size() == 2);
    REQUIRE(summary["failures"].size() == 2);
    auto const& failure = summary["failures"][0];
    CHECK(failure["message"].get<std::string>().find("NaN") != std::string::npos);
    CHECK(!failure["log"].empty());
    CHECK(fs::exists(bench.small / failure["folder"].get<std::string>() / "failure.json"));
    CHECK(!fs::exists(bench.small / failure["folder"].get<std::string>() / "summary.json"));
    CHECK(bench.run({"vary={train.optimizer.lr: [0.001, 1.0e+9]}", "baseline=0.001", "train.log.every=1", "--quiet"}).code == 4);
  }

  TEST_CASE("shards share the trials, and the last one has the whole table") {
    Bench const bench;
    CHECK(bench.run({"--quiet", "--shard", "1/2"}).code == 0);
    CHECK(bench.finished().size() == 3);
    CHECK(bench.summary()["missing"].size() == 3);
    CHECK(bench.run({"--quiet", "--shard", "2/2"}).code == 0);
    CHECK(bench.finished().size() == 6);
    CHECK(bench.summary()["missing"].empty());
  }

  TEST_CASE("tuning chooses for each arm on seeds of its own") {
    Bench const bench;
    auto const outcome =
        bench.run({"--quiet", "vary={model.attention: [scaled, dot]}", "tune={grid: {train.optimizer.lr: [1.0e-2, 1.0e-7]}, seeds: 1}"});
    INFO(outcome.errors);
    CHECK(outcome.code == 0);
    for (auto const& arm : bench.summary()["arms"]) CHECK(arm["tuned"]["train.optimizer.lr"] == "1.0e-2");
    CHECK(bench.finished().size() == 4 + 4);
  }

  TEST_CASE("a plan counts, measures and warns, and trains nothing") {
    Bench const bench;
    auto arguments = bench.command();
    arguments.front() = "plan";
    auto const outcome = test::run_heed(arguments);
    CHECK(outcome.code == 0);
    CHECK(outcome.output.find("3 arms, 6 runs") != std::string::npos);
    CHECK(outcome.output.find("cannot show any difference at p ≤ 0.05; 6 seeds can") != std::string::npos);
    CHECK(!fs::exists(bench.runs));
  }

  TEST_CASE("a metric that is not there is named with those that are") {
    Bench const bench;
    auto const outcome = bench.run({"metric=validation.los", "seeds=1", "vary={model.attention: [scaled, dot]}"});
    CHECK(outcome.code == 4);
    CHECK(outcome.errors.find("its metrics hold no 'validation.los' (there are ") != std::string::npos);
  }
}
