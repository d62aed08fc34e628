#include "tests/experiments/said.hpp"
#include "tests/json.hpp"

TEST_SUITE("interrupted_study") {
  namespace test = heed::test;
  namespace fs = std::filesystem;

  namespace {

  /// A study, and what comes out of it in a folder where nothing interrupts it.
  struct Interrupted {
    explicit Interrupted(std::string const& text) {
      test::put(folder / "study.yaml", "name: small\n" + text);
      REQUIRE(test::run_heed(command("whole")).code == 0);
    }
    std::vector<std::string> command(std::string const& output) const {
      return {"run", folder / "study.yaml", "--output", folder / output, "--quiet", "--jobs", "2"};
    }
    /// Starts it in the folder "parts" and sends a signal so many ms later; its exit code.
    int stopped(int after, int signal) const {
      test::Program program(command("parts"));
      std::this_thread::sleep_for(std::chrono::milliseconds(after));
      program.send(signal);
      return program.wait().code;
    }
    fs::path cell() const { return fs::directory_iterator(small / "cells")->path(); }
    /// The results are those of the study that was not interrupted.
    void check_results() const {
      for (char const* const file : {"results.csv", "summary.md"})
        CHECK(test::get(small / file) == test::get(folder / "whole/small" / file));
      auto const summary = [](fs::path const& path) {
        auto json = test::summary_of(path);
        for (char const* const key : {"time.seconds", "environment", "file_sha256"}) CHECK(json.erase(key) == 1);
        return json;
      };
      CHECK(summary(small) == summary(folder / "whole/small"));
    }

    test::Folder folder;
    fs::path small = folder / "parts/small";
  };

  std::string const of_both =
      "study: {kind: softmax_scaling, d_k: [16, 64], keys: [4, 10], distribution: [gaussian], precision: 0.02, layers: 2}\n";

  }  // namespace

  TEST_CASE("stopped by any signal, within cells and between them: the study goes on, and ends with the same bits") {
    for (std::string const& text : {of_both, std::string("study: {kind: normalisers, d_k: [1, 4, 16, 64], keys: 8, samples: 1000}\n")}) {
      CAPTURE(text);
      Interrupted const study(text);
      std::vector<int> const signals{SIGINT, SIGKILL, SIGTERM, SIGUSR1, SIGHUP};
      std::size_t times = 0;
      for (int code = -1; code != 0; ++times) {
        int const signal = signals[times % signals.size()];
        code = study.stopped(static_cast<int>(60 + 40 * times), signal);
        CHECK((code == 130 || code == 0 || code == -signal));  // the last: before it asks to be told of signals
        REQUIRE(times < 200);
      }
      CHECK(times > 2);
      study.check_results();
    }
  }

  TEST_CASE("processes share the cells of a study, and none measures what another has measured") {
    Interrupted const study(of_both);
    {
      test::Program first(study.command("parts")), second(study.command("parts")), third(study.command("parts"));
      for (auto* const program : {&first, &second, &third}) test::check_ends(program->wait(), 0);
    }
    study.check_results();
    fs::remove(study.small / "summary.json");
    auto const before = fs::last_write_time(study.cell() / "summary.json");
    CHECK(test::run_heed(study.command("parts")).code == 0);
    CHECK(fs::last_write_time(study.cell() / "summary.json") == before);
    study.check_results();

    // Nor is a cell changed.
    test::unseal(study.cell());
    std::string rows;
    test::change_json(study.cell() / "summary.json", [&](test::OrderedJson& cell) {
      rows = cell["results"];
      std::size_t first = 0;
      for (int column = 0; column < 5; ++column) first = rows.find(',', first) + 1;
      cell["results"] = rows.replace(first, rows.find(',', first) - first, "17");
    });
    fs::remove(study.small / "summary.json");
    CHECK(test::run_heed(study.command("parts")).code == 0);
    CHECK(test::get(study.small / "results.csv").find(rows.substr(0, rows.find('\n'))) != std::string::npos);
  }

  TEST_CASE("a cell of another configuration, a damaged one and a share of the cells are refused") {
    Interrupted const study(of_both);
    REQUIRE(test::run_heed(study.command("parts")).code == 0);
    fs::remove(study.small / "summary.json");
    auto const with = [&](std::string const& more) { return test::joined(study.command("parts"), {more}); };
    test::refuses(with("seed=2"), 2, {"what differs: seed"});
    fs::remove(study.small / "config.yaml");
    test::refuses(with("seed=2"), 2, {"cells/", "was measured with another content of a file: configuration"});
    test::put(study.small / "config.yaml", test::get(study.folder / "whole/small/config.yaml"));
    auto const file = study.cell() / "summary.json";
    test::put(file, test::get(file).substr(0, 100));
    test::refuses(study.command("parts"), 3, {file.string()});
    test::refuses(with("--shard=1/2"), 2, {"--shard: is for ablations"});
  }
}
