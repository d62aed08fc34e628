#include <chrono>
#include <cstddef>
#include <filesystem>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "experiments/run/csv.hpp"
#include "experiments/study/layers.hpp"
#include "experiments/study/softmax_scaling.hpp"
#include "experiments/study/unfinished.hpp"
#include "tests/experiments/unsealed.hpp"
#include "tests/program.hpp"

TEST_SUITE("interrupted_study") {
  using namespace heed;
  namespace fs = std::filesystem;

  namespace {

  /// A study in a folder, and the same in another that nothing interrupts.
  struct Study {
    explicit Study(std::string const& text) {
      test::put(folder / "study.yaml", "name: small\n" + text);
      REQUIRE(test::run_heed(command("whole")).code == 0);
    }
    std::vector<std::string> command(std::string const& output) const {
      return {"run", folder / "study.yaml", "--output", folder / output, "--quiet", "--jobs", "2"};
    }
    std::string whole() const { return test::get(folder / "whole/small/results.csv"); }
    /// Starts it, sends a signal so many ms later, or as soon after that as it takes signals; its exit code.
    int interrupt(int after, int signal = SIGINT) const {
      for (;; after += 20) {
        test::Program program(command("parts"));
        std::this_thread::sleep_for(std::chrono::milliseconds(after));
        program.send(signal);
        auto const outcome = program.wait();
        INFO(outcome.errors);
        if (outcome.code == -signal) continue;  // it has not yet asked to be told of it
        CHECK((outcome.code == 130 || outcome.code == 0));
        return outcome.code;
      }
    }
    /// Interrupts it, each time a little later, until more of this part is kept than before: its stage and its samples, which never become
    /// fewer. Empty: the cell to which it belongs was measured to its end.
    std::vector<std::int64_t> interrupted_beyond(std::vector<std::int64_t> const& before, fs::path const& part) const {
      for (int after = 50;; after += 20) {
        REQUIRE(interrupt(after) == 130);
        auto const kept = kept_part(part);
        if (kept.empty() && before.empty()) continue;
        if (kept.empty()) return {};
        auto const place = kept.at("place").data<std::int64_t>();
        std::vector<std::int64_t> const now{place[0], place[1]};
        REQUIRE_FALSE(now < before);
        if (now > before) return now;
      }
    }
    /// Interrupts it by one signal after the other, each a little later, until it comes to its end; how often.
    std::size_t interrupted_to_the_end() const {
      std::vector<int> const signals{SIGINT, SIGTERM, SIGUSR1, SIGHUP};
      for (std::size_t times = 0; times < 100; ++times)
        if (interrupt(static_cast<int>(100 + 50 * times), signals[times % signals.size()]) == 0) return times;
      FAIL("it does not come to its end");
      return 0;
    }

    test::Folder folder;
    fs::path small = folder / "parts/small";
  };

  }  // namespace

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
    std::vector<ScalingCell> first(whole->begin(), whole->begin() + 9);  // three of eight cells, at three scales each
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

  TEST_CASE("signals within the first cell, within each and among layers: the study goes on, and ends with the same bits") {
    Study const study(
        "study: {kind: softmax_scaling, d_k: [64], keys: [10, 16], distribution: [gaussian], scale: [none, rsqrt], "
        "precision: 0.0015, layers: 3}\n");
    auto const part = study.small / "unfinished/gaussian-64-10.safetensors";
    auto const first = study.interrupted_beyond({}, part);
    CHECK(first[1] >= 64);
    CHECK_FALSE(fs::exists(study.small / "results.csv"));
    auto const second = study.interrupted_beyond(first, part);
    if (!second.empty()) CHECK((second[0] > first[0] || second[1] >= first[1] + 64));
    CHECK(study.interrupted_to_the_end() > 2);
    CHECK(test::get(study.small / "results.csv") == study.whole());
    CHECK_FALSE(fs::exists(study.small / "unfinished"));
  }

  TEST_CASE("a part that is damaged is measured again") {
    Study const study(
        "study: {kind: softmax_scaling, d_k: [64], keys: [10], distribution: [gaussian], scale: [none], precision: 0.0015, "
        "layers: 0}\n");
    auto const part = study.small / "unfinished/gaussian-64-10.safetensors";
    REQUIRE(study.interrupt(60) == 130);
    auto bytes = test::get(part);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    test::put(part, bytes);
    CHECK(kept_part(part).empty());
    CHECK(test::run_heed(study.command("parts")).code == 0);
    CHECK(test::get(study.small / "results.csv") == study.whole());
  }

  TEST_CASE("draws of layers are kept, and whole layers too") {
    test::Folder const folder;
    LayerDraws const few{.layers = 2, .draws = 3}, all{.layers = 2, .draws = 5};
    auto const whole = gradients_of_layers(all, "pre", "rsqrt", 8, 1);
    auto begun = gradients_of_layers(few, "pre", "rsqrt", 8, 1)->norms;
    begun[1][2] = 17;
    std::vector<double> norms;
    for (std::size_t draw = 0; draw < 3; ++draw) norms.insert(norms.end(), {begun[0][draw], begun[1][draw]});
    keep_part(folder / "part", {{"norms", Tensor::of(norms, {3, 2})}});
    auto const resumed = gradients_of_layers(all, "pre", "rsqrt", 8, 1, folder / "part");
    CHECK(resumed->norms[1][2] == 17);
    CHECK(resumed->norms[0] == whole->norms[0]);
    CHECK(resumed->norms[1][4] == whole->norms[1][4]);

    SoftmaxScalingSettings settings;
    settings.d_k = {4};
    settings.keys = {2};
    settings.distribution = {"logits"};
    settings.precision = 0.5;
    settings.layers = 1;
    auto cells = *measure_grid(settings, {});
    REQUIRE(cells.back().of_layer());
    auto& value = cells.back().values[static_cast<std::size_t>(Quantity::query_weights_gradient)]->mean;
    value = 17;
    StudyContext again;
    again.kept = report(settings, cells).csv;
    auto const found = *measure_grid(settings, again);
    CHECK(found.size() == cells.size());
    CHECK(found.back().get(Quantity::query_weights_gradient)->mean == 17);
  }

  TEST_CASE("normalisers: cells are kept, and neither measured again nor changed") {
    Study const study("study: {kind: normalisers, d_k: [1, 4, 16, 64], keys: 8, samples: 3000}\n");
    REQUIRE(study.interrupt(60) == 130);
    CHECK(parse_csv(test::get(study.small / "results.csv")).size() > 1);
    auto const summary = study.small / "summary.json";
    CHECK(nlohmann::json::parse(test::get(summary))["finished"] == false);
    study.interrupted_to_the_end();
    CHECK(test::get(study.small / "results.csv") == study.whole());
    CHECK(test::get(study.small / "summary.md") == test::get(study.folder / "whole/small/summary.md"));

    auto json = nlohmann::ordered_json::parse(test::get(summary));
    json["finished"] = false;
    for (char const* hashes : {"files", "file_sha256"}) json.erase(hashes);  // which would tell that it was changed
    test::put(summary, json.dump());
    auto lines = parse_csv(test::get(study.small / "results.csv"));
    lines[1][5] = "17";
    std::string changed;
    for (std::size_t i = 0; i + 6 < lines.size(); ++i) changed += csv_line(lines[i]);
    test::put(study.small / "results.csv", changed);
    CHECK(test::run_heed(study.command("parts")).code == 0);
    auto const ended = parse_csv(test::get(study.small / "results.csv"));
    CHECK((ended.size() == lines.size() && ended[1][5] == "17" && ended.back() == lines.back()));
    test::put(summary, json.dump());
    test::put(study.small / "results.csv", changed + "softmax,none,1\n");
    test::refuses(study.command("parts"), 3, {"results.csv: line", "no number of this study"});
  }

  TEST_CASE("a part of a cell is read as it was kept, and not where it was changed or cut") {
    test::Folder const folder;
    auto const file = folder / "deep/part";
    CHECK(kept_part(file).empty());
    keep_part({}, {{"a", Tensor::of(std::vector<std::int64_t>{1}, {1})}});
    CHECK(kept_part({}).empty());
    PartOfCell const part{{"a", Tensor::of({1.5, -0.0}, {2}, DType::float32)}, {"b", Tensor::of({1e308}, {1}, DType::float64)}};
    keep_part(file, part);
    auto const kept = kept_part(file);
    CHECK((kept.size() == 2 && kept.at("a").to_vector() == part.at("a").to_vector() && kept.at("b").at(0) == 1e308));
    CHECK(kept.at("a").dtype() == DType::float32);
    auto const bytes = test::get(file);
    for (std::size_t const at : {std::size_t{3}, bytes.size() - 1}) {
      auto changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 4);
      test::put(file, changed);
      CHECK(kept_part(file).empty());
    }
    test::put(file, bytes.substr(0, bytes.size() - 4));
    CHECK(kept_part(file).empty());
  }
}
