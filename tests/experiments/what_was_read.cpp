// A result does not mix two contents of a file: what a run has read is a part of what it is.

#include "nn/files/sha256.hpp"
#include "tests/experiments/said.hpp"
#include "tests/json.hpp"
#include "tests/rooms.hpp"

TEST_SUITE("what_was_read") {
  using namespace heed;
  namespace fs = std::filesystem;
  using Arguments = std::vector<std::string>;

  std::string hash_of(std::string const& text) { return sha256(std::as_bytes(std::span(text))); }

  /// Two texts of the same 5 characters and of equal length.
  struct Texts {
    test::Folder folder;
    fs::path text = folder / "words.txt";
    std::string first, other;

    Texts() {
      for (int i = 0; i < 200; ++i) first += i % 2 == 0 ? "abc d" : "dcba ", other += i % 3 == 0 ? "d cab" : "abd c";
      put(first);
      test::put(folder / "run.yaml",
                "name: run\ndata: {kind: text, path: words.txt, validation: 0.2}\n"
                "model: {kind: gpt, layers: 1, heads: 1, width: 8, context: 8}\n"
                "train: {steps: 6, batch: 2, schedule: constant, evaluate: {every: 3}, checkpoint: {every: 2}}\n");
      test::put(folder / "ablation.yaml", "ablation: two\nbase: run.yaml\nvary: {model.attention: [scaled, dot]}\nseeds: 2\n");
    }
    void put(std::string const& content) const { test::put(text, content); }
    Arguments command(std::string const& file, Arguments const& more = {}) const {
      return test::joined({"run", folder / file, "--output", runs(), "--quiet"}, more);
    }
    std::string runs() const { return folder / "runs"; }
    void refuses(Arguments const& arguments, int code) const {
      test::refuses(arguments, code, {"words.txt", hash_of(first), hash_of(other)});
    }
  };

  /// Puts kept trials into an ablation, which is then as one whose process was killed before it wrote the tables, and writes these.
  void mix(fs::path const& ablation, fs::path const& kept, std::string const& trials) {
    for (auto const& trial : fs::directory_iterator(kept)) {
      auto const name = trial.path().filename();
      if (name.string().find(trials) == std::string::npos) continue;
      fs::remove_all(ablation / name);
      fs::rename(trial.path(), ablation / name);
    }
    fs::remove(ablation / "summary.json");
    test::run_well({"report", ablation.string(), "--quiet"});
  }

  TEST_CASE_FIXTURE(Texts, "a run that is gone on with, or is finished, refuses another file of the same vocabulary") {
    REQUIRE(test::run_heed(command("run.yaml", {"train.steps=4"})).code == 0);
    put(other);
    refuses(command("run.yaml"), 2);                     // it would go on
    refuses(command("run.yaml", {"train.steps=4"}), 2);  // it is finished
    put(first);
    REQUIRE(test::run_heed(command("run.yaml")).code == 0);
    REQUIRE(test::run_heed(command("run.yaml", {"name=whole"})).code == 0);
    auto const weights = [&](char const* run) { return sha256_of_file(fs::path(runs()) / run / "state-6.safetensors"); };
    CHECK(weights("run") == weights("whole"));
    put(other);
    CHECK(test::run_heed(command("run.yaml", {"--fresh"})).code == 0);
  }

  TEST_CASE_FIXTURE(Texts, "evaluate refuses other data, wherever they are, and takes the same from elsewhere") {
    REQUIRE(test::run_heed(command("run.yaml")).code == 0);
    fs::create_directories(folder / "moved");
    fs::rename(text, folder / "moved/words.txt");
    Arguments const evaluate{"evaluate", runs() + "/run", "--quiet", "--data", folder / "moved"};
    CHECK(test::run_heed(evaluate).code == 0);
    for (auto const& content : {other, first.substr(0, 100)}) {
      test::put(folder / "moved/words.txt", content);
      test::refuses(evaluate, 3, {"trained on other data", hash_of(first), hash_of(content)});
    }
  }

  TEST_CASE_FIXTURE(Texts, "an ablation does not train an arm or a seed on another file than the others") {
    REQUIRE(test::run_heed(command("ablation.yaml")).code == 0);
    put(other);
    CHECK(test::run_heed(command("ablation.yaml")).code == 0);  // all is trained: nothing is read
    refuses(command("ablation.yaml", {"vary={model.attention: [scaled, dot, additive]}"}), 2);
    refuses(command("ablation.yaml", {"seeds=3"}), 2);
    // From another folder, where a file of that name has another content.
    fs::create_directories(folder / "moved");
    fs::rename(text, folder / "moved/words.txt");
    refuses(command("ablation.yaml", {"seeds=3", "--data", folder / "moved"}), 2);
    test::put(folder / "moved/words.txt", first);
    CHECK(test::run_heed(command("ablation.yaml", {"seeds=3", "--data", folder / "moved"})).code == 0);
    test::put(folder / "moved/words.txt", other);
    CHECK(test::run_heed(command("ablation.yaml", {"--fresh", "--data", folder / "moved"})).code == 0);
  }

  TEST_CASE_FIXTURE(Texts, "a tuned ablation that is finished reads nothing; a mixture among tuning trials is said too") {
    Arguments const tuned{"tune={grid: {train.optimizer.lr: [0.1, 0.01]}, seeds: 1}", "seeds=1"};
    REQUIRE(test::run_heed(command("ablation.yaml", tuned)).code == 0);
    fs::path const ablation = fs::path(runs()) / "two", kept = folder / "kept";
    fs::copy(ablation, kept, fs::copy_options::recursive);
    put(other);
    CHECK(test::run_heed(command("ablation.yaml", tuned)).code == 0);
    REQUIRE(test::run_heed(command("ablation.yaml", {tuned[0], tuned[1], "--fresh"})).code == 0);
    mix(ablation, kept, "tune-scaled-0.1");
    CHECK(test::get(ablation / "summary.md").find("not compared") != std::string::npos);
  }

  TEST_CASE("a study goes on with the trained run that it was begun with, and with cells that nobody has changed" *
            test::needs("studies")) {
    Texts const texts;
    REQUIRE(test::run_heed(texts.command("run.yaml", {"model.context=32", "name=trained"})).code == 0);
    test::put(
        texts.folder / "study.yaml",
        "name: study\nstudy: {kind: softmax_scaling, distribution: [], scale: [none], d_k: [4], keys: [3], layers: 0, run: trained}\n");
    REQUIRE(test::run_heed(texts.command("study.yaml")).code == 0);
    fs::path const study = fs::path(texts.runs()) / "study";
    auto const interrupt = [&] { fs::remove(study / "summary.json"); };  // as if it had been, after its last cell
    auto const results = test::get(study / "results.csv");
    REQUIRE(std::ranges::count(results, '\n') > 1);
    interrupt();
    fs::remove(study / "results.csv");
    CHECK(test::run_heed(texts.command("study.yaml")).code == 0);
    CHECK(test::get(study / "results.csv") == results);
    interrupt();
    auto const cell = fs::directory_iterator(study / "cells")->path() / "summary.json";
    auto const whole = test::get(cell);
    auto changed = whole;
    changed[changed.find("trace,") + 6] ^= 1;
    test::put(cell, changed);
    test::refuses(texts.command("study.yaml"), 3, {cell.string(), "is damaged, or was changed"});
    test::put(cell, whole);
    auto const weights = fs::path(texts.runs()) / "trained/checkpoint.safetensors";
    auto const before = test::get(weights);
    REQUIRE(test::run_heed(texts.command("run.yaml", {"model.context=32", "name=trained", "seed=2", "--fresh"})).code == 0);
    test::refuses(texts.command("study.yaml"), 2, {"checkpoint.safetensors", hash_of(before), hash_of(test::get(weights))});
  }

  TEST_CASE_FIXTURE(Texts, "weights that trials start from are a part of what they are") {
    REQUIRE(test::run_heed(command("run.yaml", {"name=old"})).code == 0);
    REQUIRE(test::run_heed(command("run.yaml", {"name=new", "seed=2"})).code == 0);
    auto const weights = [&](char const* run) { return test::get(fs::path(runs()) / run / "checkpoint.safetensors"); };
    std::string const file = folder / "start.safetensors";
    test::put(file, weights("old"));
    test::run_well(command("ablation.yaml", {"init={from: start.safetensors, changed: [model.attention.score]}"}));
    test::put(file, weights("new"));
    test::refuses(command("ablation.yaml", {"init={from: start.safetensors, changed: [model.attention.score]}", "seeds=3"}), 2,
                  {"init.from", hash_of(weights("old")), hash_of(weights("new"))});
  }

  TEST_CASE_FIXTURE(Texts, "trials that have read two contents are shown, not compared, and the next call refuses") {
    REQUIRE(test::run_heed(command("ablation.yaml")).code == 0);
    fs::path const ablation = fs::path(runs()) / "two", kept = folder / "kept";
    fs::rename(ablation, kept);
    put(other);
    REQUIRE(test::run_heed(command("ablation.yaml")).code == 0);
    mix(ablation, kept, "dot-seed");
    auto const summary = test::summary_of(ablation);
    for (auto const& arm : summary["arms"]) CHECK(!arm.contains("difference"));
    for (auto const& page : {summary["warnings"].dump(), test::get(ablation / "report.html"), test::get(ablation / "summary.md")})
      test::check_holds(page, {"not compared", hash_of(first), hash_of(other)});
    refuses(command("ablation.yaml"), 2);
  }

  TEST_CASE_FIXTURE(Texts, "compare and report say that equal configurations have read different contents") {
    REQUIRE(test::run_heed(command("run.yaml", {"name=a"})).code == 0);
    put(other);
    REQUIRE(test::run_heed(command("run.yaml", {"name=b"})).code == 0);
    test::check_holds(
        test::run_well({"compare", runs() + "/a", runs() + "/b"}).output,
        {"the configurations are equal, but the files that were read are not", hash_of(first).substr(0, 12), hash_of(other).substr(0, 12)});
    test::run_well({"report", runs(), "--quiet"});
    test::check_holds(test::get(fs::path(runs()) / "report.html"),
                      {"the results on this page read ", "with 2 different contents", "(SHA-256 " + hash_of(first) + ")",
                       "(SHA-256 " + hash_of(other) + ")"});
  }
}
