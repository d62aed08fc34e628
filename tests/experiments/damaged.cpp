// What a finished run has left is as it was, or whoever reads it says that it is not.

#include "nn/files/safetensors.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/small_ablation.hpp"

TEST_SUITE("damaged") {
  using namespace heed;
  namespace fs = std::filesystem;
  using test::Arguments, test::flipped;

  /// Two finished runs that differ in their seed.
  struct TwoRuns {
    test::Folder folder;
    fs::path run = folder / "runs/a", sister = folder / "runs/b";

    TwoRuns() {
      std::string text;
      for (int i = 0; i < 100; ++i) text += i % 3 == 0 ? "the cat " : "a dog, ";
      test::put(folder / "words.txt", text);
      test::put(folder / "run.yaml",
                "name: a\ndata: {kind: text, path: words.txt}\nmodel: {kind: gpt, layers: 1, heads: 2, width: 8, context: 8}\n"
                "train: {steps: 4, batch: 2, schedule: constant, evaluate: {every: 2}}\n");
      for (auto const& more : {Arguments{}, Arguments{"name=b", "seed=2"}}) REQUIRE(test::run_heed(command(more)).code == 0);
    }
    Arguments command(Arguments const& more = {}) const {
      return test::joined({"run", folder / "run.yaml", "--output", folder / "runs", "--quiet"}, more);
    }
    /// All that reads the weights refuses, with these words.
    void weights_refused(std::vector<std::string> const& words) const {
      for (auto const& arguments : {Arguments{"evaluate", run, "--quiet"}, Arguments{"sample", run},
                                    Arguments{"inspect", run, "--text", "the"}, command({"train.steps=5"})})
        test::refuses(arguments, 3, words);
    }
  };

  TEST_CASE("weights with one wrong byte, one NaN, of another run, or beside another configuration are refused by all that reads them") {
    TwoRuns const runs;
    auto const config = test::get(runs.run / "config.yaml");
    auto other = config;
    auto const heads = other.find("heads: 2");
    REQUIRE(heads != std::string::npos);
    test::put(runs.run / "config.yaml", other.replace(heads, 8, "heads: 1"));
    for (auto const& arguments : {Arguments{"evaluate", runs.run, "--quiet"}, Arguments{"sample", runs.run}})
      test::refuses(arguments, 3, {"another configuration", "model.heads"});
    test::refuses({"compare", runs.run, runs.sister}, 3, {"config.yaml", "is not as it was"});
    test::put(runs.run / "config.yaml", config);

    auto const file = runs.run / "checkpoint.safetensors";
    auto const whole = test::get(file);
    for (std::size_t const at : {std::size_t{9}, whole.size() / 3, whole.size() / 2, whole.size() - 3}) {
      CAPTURE(at);
      test::put(file, flipped(whole, at));
      runs.weights_refused({"checkpoint.safetensors"});
    }
    test::put(file, whole);
    SafetensorsFile const read(file);
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (auto const& name : read.names()) tensors.emplace_back(name, read.tensor(name));
    auto const norm = std::ranges::find_if(tensors, [](auto const& each) { return each.first.find("norm") != std::string::npos; });
    REQUIRE(norm != tensors.end());
    norm->second.mutable_data<float>()[1] = std::numeric_limits<float>::quiet_NaN();
    save_safetensors(file, tensors, read.metadata());
    runs.weights_refused({"checkpoint.safetensors", norm->first, "holds NaN at element 1"});
    test::put(file, test::get(runs.sister / "checkpoint.safetensors"));
    for (auto const& arguments : {Arguments{"evaluate", runs.run, "--quiet"}, Arguments{"sample", runs.run}})
      test::refuses(arguments, 3, {"checkpoint.safetensors", "another configuration", "seed"});
    test::refuses(runs.command({"train.steps=5"}), 3, {"state-4.safetensors", "is not the state"});
  }

  TEST_CASE(
      "rows that are not the finished run's (shortened, changed, emptied, gone, another run's) are refused, a wrong digit of it too") {
    TwoRuns const runs;
    auto const file = runs.run / "metrics.jsonl";
    auto const whole = test::get(file);
    auto const row = whole.find('\n') + 1;
    auto const rows_refused = [&](std::string const& reason) {
      for (auto const& arguments : {runs.command(), Arguments{"report", runs.run}, Arguments{"compare", runs.run, runs.sister}})
        test::refuses(arguments, 3, {"metrics.jsonl", reason});
    };
    for (auto const& content : {whole.substr(0, whole.find('\n', row) + 1), flipped(whole, whole.find("\"loss\":") + 9), std::string(),
                                test::get(runs.sister / "metrics.jsonl")}) {
      test::put(file, content);
      rows_refused("is not as it was");
    }
    fs::remove(file);
    rows_refused("No such file");
    CHECK(test::run_heed(runs.command({"--fresh"})).code == 0);

    auto const summary = runs.run / "summary.json";
    auto const sound = test::get(summary);
    test::put(summary, flipped(sound, sound.find("\"validation.loss\": ") + 22));
    test::refuses({"report", runs.run}, 3, {"summary.json", "file_sha256"});
    CHECK(test::run_heed(runs.command()).code == 0);
    CHECK(test::run_heed({"report", runs.run, "--quiet"}).code == 0);
  }

  TEST_CASE("a finished trial whose rows are damaged is named, put aside and trained again, to the same table") {
    test::SmallAblation const bench;
    REQUIRE(bench.run({"--quiet"}).code == 0);
    auto const rows = bench.rows();
    auto const folders = bench.summary()["arms"][1]["folders"].get<std::vector<std::string>>();
    fs::path const trial = bench.small / folders[0], other = bench.small / folders[1];
    auto const whole = test::get(trial / "metrics.jsonl");
    for (int damage = 0; damage < 4; ++damage) {
      CAPTURE(damage);
      if (damage == 0) test::put(trial / "metrics.jsonl", whole.substr(0, whole.find('\n', whole.size() / 2) + 1));
      if (damage == 1) test::put(trial / "metrics.jsonl", "");
      if (damage == 2) fs::remove(trial / "metrics.jsonl");
      if (damage == 3) test::put(trial / "metrics.jsonl", test::get(other / "metrics.jsonl"));
      test::check_ends(bench.run({"--quiet"}), 0, {"metrics.jsonl", "the trial is moved aside as " + folders[0] + ".old-"});
      CHECK(bench.rows() == rows);
    }
  }
}
