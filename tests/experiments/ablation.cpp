#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "experiments/run/folder.hpp"
#include "experiments/run/record.hpp"
#include "nn/files/npz.hpp"
#include "tests/experiments/small_ablation.hpp"
#include "tests/json.hpp"
#include "tests/program.hpp"
#include "tests/rooms.hpp"

// An ablation, through the real program: its trials are processes, its tables are those of an undisturbed one however often it was killed,
// and a trial that fails leaves the others whole.

using namespace heed;
namespace fs = std::filesystem;

namespace {

using Bench = test::SmallAblation;
using test::Arguments;

Arguments const tuned{"--quiet", "tune={grid: {train.optimizer.lr: [1.0e-2, 1.0e-7]}, seeds: 1}"};  // 6 trials beside the 6

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

  TEST_CASE("an ablation's folder is compared by its arms") {
    Bench const bench;
    CHECK(bench.run({"--quiet", "seeds=1"}).code == 0);
    auto const outcome = test::run_heed({"compare", "small", "--output", bench.runs.string()});
    INFO(outcome.errors);
    CHECK(outcome.code == 0);
    for (char const* name : {"small/scaled", "small/additive", "small/hard", "model.attention.score"})
      CHECK_MESSAGE(outcome.output.find(name) != std::string::npos, name);
    test::refuses({"compare", (bench.small / bench.finished().begin()->first).string()}, 2, {"there is only one run"});
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

  TEST_CASE("an arm that fails leaves the others whole, is named with step and operation, and is not trained to the same NaN again") {
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
    auto const log = bench.small / failure["folder"].get<std::string>() / "log.txt";
    auto const before = test::get(log);
    auto again = bench.run({"vary={train.optimizer.lr: [0.001, 1.0e+9]}", "baseline=0.001", "train.log.every=1"});
    CHECK(again.code == 4);
    CHECK(test::get(log) == before);
    CHECK(again.output.find("2 failed trials not trained again") != std::string::npos);
    fs::last_write_time(log.parent_path() / "failure.json", fs::file_time_type::clock::now() - std::chrono::hours(24 * 365));
    again = bench.run({"vary={train.optimizer.lr: [0.001, 1.0e+9]}", "baseline=0.001", "train.log.every=1"});
    CHECK(test::get(log) != before);                 // that failure was another program's
    fs::remove(log.parent_path() / "failure.json");  // a record that cannot be read is none
    REQUIRE(::mkfifo((log.parent_path() / "failure.json").c_str(), 0600) == 0);
    CHECK(bench.run({"vary={train.optimizer.lr: [0.001, 1.0e+9]}", "baseline=0.001", "train.log.every=1", "--quiet"}).code == 4);
  }

  TEST_CASE("tuning chooses for each arm on seeds of its own") {
    Bench const bench;
    auto const outcome =
        bench.run({"--quiet", "vary={model.attention: [scaled, dot]}", "tune={grid: {train.optimizer.lr: [1.0e-2, 1.0e-7]}, seeds: 1}"});
    INFO(outcome.errors);
    CHECK(outcome.code == 0);
    for (auto const& arm : bench.summary()["arms"]) CHECK(arm["tuned"]["train.optimizer.lr"] == "1.0e-2");
    CHECK(bench.summary()["sentences"][0].get<std::string>().starts_with("dot (lr 1.0e-2) and scaled (lr 1.0e-2): "));
    auto const page = test::get(bench.small / "summary.md");
    CHECK(page.find(" MB | tuned |") != std::string::npos);
    CHECK(page.find("| lr 1.0e-2 |") != std::string::npos);
    CHECK(bench.finished().size() == 4 + 4);
  }

  TEST_CASE("while it runs, the report shows what has ended, and says how much that is") {
    Bench const bench;
    Arguments const slow{"train.steps=400", "--jobs", "1"};
    test::Program running(bench.command(slow));
    CHECK(running.wait_until([&] { return fs::exists(bench.small / "report.html"); }));
    CHECK(running.wait_until([&] { return bench.finished().size() >= 2; }));
    auto const outcome = test::run_heed({"report", "small", "--output", bench.runs.string()});
    INFO(outcome.errors);
    CHECK(outcome.code == 0);
    auto const done = bench.summary()["trials_done"].get<int>();
    CHECK(bench.summary()["trials_of"] == 6);
    CHECK((done >= 2 && done < 6));
    auto const page = test::get(bench.small / "report.html");
    CHECK(page.find(std::to_string(done) + " of 6 trials") != std::string::npos);
    CHECK(page.find("http-equiv=\"refresh\"") != std::string::npos);
    running.send(SIGTERM);
    CHECK(running.wait().code == 130);
    CHECK(bench.run(slow).code == 0);
    CHECK(bench.summary()["trials_done"] == 6);
    CHECK(test::get(bench.small / "report.html").find("http-equiv=\"refresh\"") == std::string::npos);
  }

  TEST_CASE("a gnuplot that hangs does not keep an ablation from ending") {
    Bench const bench;
    auto const begun = bench.folder / "begun";
    test::put(bench.folder / "gnuplot", "#!/bin/sh\ntrap '' INT TERM HUP\n: > '" + begun.string() +
                                            "'\ni=0\nwhile [ $i -lt 300 ]; do /bin/sleep 0.1; i=$((i + 1)); done\n");
    REQUIRE(::chmod((bench.folder / "gnuplot").c_str(), 0755) == 0);
    auto const path = bench.folder.path().string();
    test::Program running(bench.command({"train.steps=400", "--jobs", "1"}), [path] { ::setenv("PATH", path.c_str(), 1); });
    CHECK(running.wait_until([&] { return fs::exists(begun); }));
    auto const asked = std::chrono::steady_clock::now();
    running.send(SIGTERM);
    CHECK(running.wait().code == 130);
    CHECK(std::chrono::steady_clock::now() - asked < std::chrono::seconds(20));
  }

  TEST_CASE("the saved ablation.yaml runs again from anywhere: nothing is left to do, whatever has become of the base") {
    Bench const bench;
    CHECK(bench.run({"--quiet", "train.steps=20"}).code == 0);
    auto const before = bench.finished();
    test::Folder const elsewhere;
    fs::copy_file(bench.small / "ablation.yaml", elsewhere / "saved.yaml");
    for (char const* changed : {"model: {kind: bert}\n", ""}) {
      test::put(bench.folder / "base.yaml", changed);
      CHECK(test::run_heed({"run", (elsewhere / "saved.yaml").string(), "--output", bench.runs.string(), "--quiet"}).code == 0);
    }
    fs::remove(bench.folder / "base.yaml");
    auto const outcome = test::run_heed({"run", (elsewhere / "saved.yaml").string(), "--output", bench.runs.string(), "--quiet"});
    INFO(outcome.errors);
    CHECK(outcome.code == 0);
    CHECK(bench.finished() == before);
  }

  TEST_CASE("processes that run one ablation at once share all of its trials, and come to one choice and one table") {
    Bench const alone;
    CHECK(alone.run(tuned).code == 0);
    CHECK(alone.starts() == std::map<std::string, std::size_t>{{"once", 12}});
    for (std::size_t const count : {2U, 3U}) {
      CAPTURE(count);
      Bench const bench;
      std::vector<std::unique_ptr<test::Program>> programs;
      for (std::size_t i = 0; i < count; ++i) programs.push_back(std::make_unique<test::Program>(bench.command(tuned)));
      for (auto const& program : programs) {
        auto const outcome = program->wait();
        INFO(outcome.errors);
        CHECK(outcome.code == 0);
      }
      CHECK(bench.starts() == alone.starts());
      CHECK(bench.rows() == alone.rows());
      CHECK(bench.summary()["failures"].empty());
      for (std::size_t i = 0; i < 3; ++i) CHECK(bench.summary()["arms"][i]["tuned"] == alone.summary()["arms"][i]["tuned"]);
    }
  }

  TEST_CASE("a process that is killed leaves its trials to the others") {
    Bench const alone, bench;
    CHECK(alone.run(tuned).code == 0);
    std::vector<std::unique_ptr<test::Program>> programs;
    for (int i = 0; i < 3; ++i) programs.push_back(std::make_unique<test::Program>(bench.command(tuned)));
    CHECK(programs.front()->wait_until([&] { return bench.finished().size() >= 2; }));
    programs.front()->send(SIGKILL);
    for (std::size_t i = 1; i < 3; ++i) {
      auto const outcome = programs[i]->wait();
      INFO(outcome.errors);
      CHECK(outcome.code == 0);
    }
    CHECK(bench.finished().size() == 12);
    CHECK(bench.rows() == alone.rows());
  }

  TEST_CASE("a process that is stopped keeps nobody from ending, wherever it is stopped") {
    Bench const alone;
    CHECK(alone.run(tuned).code == 0);
    for (int const later : {0, 5, 12}) {  // ms: as it collects a trial and starts the next
      CAPTURE(later);
      Bench const bench;
      test::Program stopped(bench.command(tuned));
      CHECK(stopped.wait_until([&] { return bench.finished().size() >= 2; }));
      std::this_thread::sleep_for(std::chrono::milliseconds(later));
      stopped.send(SIGSTOP);
      test::Program other(bench.command(tuned));
      auto const start = std::chrono::steady_clock::now();
      CHECK(!other.wait_until([&] { return std::chrono::steady_clock::now() - start > std::chrono::seconds(20); }));  // it has ended
      stopped.send(SIGCONT);
      auto const outcome = other.wait();
      INFO(outcome.errors);
      CHECK(outcome.code == 0);
      CHECK(stopped.wait().code == 0);
      CHECK(bench.starts() == alone.starts());
      CHECK(bench.rows() == alone.rows());
    }
  }

  TEST_CASE("one stopped for a while and another killed: one table, that of a single process") {
    Bench const alone;
    CHECK(alone.run(tuned).code == 0);
    for (std::size_t const count : {2U, 3U, 5U}) {
      CAPTURE(count);
      Bench const bench;
      std::vector<std::unique_ptr<test::Program>> programs;
      for (std::size_t i = 0; i < count; ++i) programs.push_back(std::make_unique<test::Program>(bench.command(tuned)));
      CHECK(programs.front()->wait_until([&] { return bench.finished().size() >= 2; }));
      programs.front()->send(SIGSTOP);
      if (count > 2) {
        programs.back()->send(SIGKILL);
        programs.pop_back();
      }
      std::this_thread::sleep_for(std::chrono::seconds(2));
      programs.front()->send(SIGCONT);
      for (auto const& program : programs) {
        auto const outcome = program->wait();
        INFO(outcome.errors);
        CHECK(outcome.code == 0);
      }
      CHECK(bench.finished().size() == 12);
      CHECK(bench.rows() == alone.rows());
      CHECK(bench.summary()["failures"].empty());
      for (std::size_t i = 0; i < 3; ++i) CHECK(bench.summary()["arms"][i]["tuned"] == alone.summary()["arms"][i]["tuned"]);
    }
  }

  TEST_CASE("a trial that another process holds is waited for, and is no failure") {
    Bench const bench;
    CHECK(bench.run({"--quiet"}).code == 0);
    auto const rows = bench.rows();
    auto const held = bench.finished().begin()->first;
    fs::remove(bench.small / held / "summary.json");
    auto lock = FolderLock::attempt(bench.small / held);
    REQUIRE(lock);
    test::Program program(bench.command());
    auto const start = std::chrono::steady_clock::now();
    CHECK(program.wait_until([&] { return std::chrono::steady_clock::now() - start > std::chrono::seconds(1); }));  // it has not ended
    CHECK(!fs::exists(bench.small / held / "summary.json"));
    lock.reset();
    auto const outcome = program.wait();
    INFO(outcome.errors);
    CHECK(outcome.code == 0);
    CHECK(bench.summary()["failures"].empty());
    CHECK(bench.rows() == rows);
  }

  TEST_CASE("an ablation that is running is neither put aside nor joined by another version of it") {
    Bench const bench;
    test::Program running(bench.command({"train.steps=4000"}));
    CHECK(running.wait_until([&] { return fs::exists(bench.small / "ablation.yaml"); }));
    auto outcome = bench.run({"train.steps=4000", "--fresh"});
    CHECK(outcome.code == 2);
    CHECK(outcome.errors.find("another process is training in this folder") != std::string::npos);
    for (char const* change : {"seeds=3", "train.steps=41"}) {
      outcome = bench.run({change});
      CHECK(outcome.code == 2);
      CHECK(outcome.errors.find("another process is running another version of this ablation here") != std::string::npos);
    }
    CHECK(!fs::exists(bench.runs / "small.old-1"));
    auto const nested = bench.command({"ablation=small/nested", "train.steps=4000", "--quiet"});
    test::Program below(nested);  // its trials may outlive it: they are looked for at any depth
    CHECK(below.wait_until([&] { return fs::exists(bench.small / "nested" / "ablation.yaml"); }));
    running.send(SIGTERM);
    CHECK(running.wait().code == 130);
    outcome = bench.run({"train.steps=4000", "--fresh"});
    CHECK(outcome.code == 2);
    CHECK(outcome.errors.find("another process is training in this folder") != std::string::npos);
    below.send(SIGTERM);
    CHECK(below.wait().code == 130);
    CHECK(bench.run({"train.steps=2", "--fresh", "--quiet"}).code == 0);
    CHECK(fs::exists(bench.runs / "small.old-1"));
  }

  TEST_CASE("a tuning trial that fails is told in table, page and exit code, and its point is out") {
    Bench const bench;
    auto const outcome = bench.run(
        {"vary={model.attention: [scaled, dot]}", "train.log.every=1", "tune={grid: {train.optimizer.lr: [1.0e+9, 1.0e-2]}, seeds: 1}"});
    INFO(outcome.errors);
    CHECK(outcome.code == 4);
    CHECK(outcome.output.find("failed: dot 1.0e+9 (tuning), seed 10001: step ") != std::string::npos);
    auto const summary = bench.summary();
    for (auto const& arm : summary["arms"]) CHECK(arm["tuned"]["train.optimizer.lr"] == "1.0e-2");
    REQUIRE(summary["failures"].size() == 2);
    CHECK(summary["failures"][1]["arm"] == "dot 1.0e+9 (tuning)");
    CHECK(test::get(bench.small / "summary.md").find("**failed**: dot 1.0e+9 (tuning)") != std::string::npos);
    CHECK(test::get(bench.small / "report.html").find("dot 1.0e+9 (tuning)") != std::string::npos);
  }

  TEST_CASE("an arm that no point of the grid trains leaves the others their results") {
    Bench const bench;
    auto const outcome = bench.run({"--quiet", "vary={train.clip: [1.0, none]}", "seeds=1", "baseline=1.0",
                                    "add={wild: {train.optimizer.lr: 1.0e+9}}", "tune={grid: {train.batch: [2, 4]}, seeds: 1}"});
    INFO(outcome.errors);
    CHECK(outcome.code == 4);
    auto const summary = bench.summary();
    CHECK(summary["arms"][0]["values"].size() == 1);
    CHECK(summary["arms"][2]["values"].empty());
    CHECK(summary["warnings"].dump().find("wild: at no point of the tuning grid does training end") != std::string::npos);
  }

  TEST_CASE("a trial's cost that is missing or no number is left out, and stops nothing") {
    Bench const bench;
    CHECK(bench.run({"--quiet"}).code == 0);
    auto const folders = bench.summary()["arms"][0]["folders"];
    test::unseal(bench.small / folders[0].get<std::string>());
    auto summary = nlohmann::json::parse(test::get(bench.small / folders[0].get<std::string>() / "summary.json"));
    summary["time.tokens_per_second"] = nullptr;  // as infinity was once written
    summary.erase("memory.peak");
    for (auto const& folder : folders) test::put(bench.small / folder.get<std::string>() / "summary.json", summary.dump());
    auto const outcome = bench.run();
    INFO(outcome.errors);
    CHECK(outcome.code == 0);
    auto const arms = bench.summary()["arms"];
    CHECK(!arms[0].contains("time.tokens_per_second"));
    CHECK(!arms[0].contains("memory.peak"));
    CHECK(arms[0]["time.seconds"].is_number());
    CHECK(arms[1]["time.tokens_per_second"].get<double>() > 0);
  }

  TEST_CASE("ablation.yaml quotes what other readers would take for truth values, and is the same ablation" * test::needs("translation")) {
    Bench const bench;
    for (char const* language : {"no", "on", "de"}) test::put(bench.folder / (std::string("text.") + language), "a b c\nb c a\n");
    test::put(bench.folder / "base.yaml",
              "data: {kind: parallel, train: text, from: no, to: de, least_count: 1}\n"
              "model: {kind: transformer, layers: 1, heads: 1, width: 4, context: 8, bias: no}\ntrain: {steps: 1, batch: 2}\n");
    Arguments const changes{
        "vary={data.from: [no, on], train.optimizer.lr: [1e-3]}", "baseline={data.from: no}", "seeds=1", "metric=loss", "--quiet",
        "set={model.tie: off, data.vocabularies: joint}"};
    CHECK(bench.run(changes).code == 0);
    auto const written = test::get(bench.small / "ablation.yaml");
    INFO(written);
    CHECK(written.find("vary: {data.from: [\"no\", \"on\"], train.optimizer.lr: [1.e-3]}") != std::string::npos);
    CHECK(written.find("baseline: {data.from: \"no\"}") != std::string::npos);
    CHECK(written.find("model.tie: off") != std::string::npos);  // a switch, for every reader
    CHECK(written.find("data: {kind: parallel, train: text, from: \"no\",") != std::string::npos);
    CHECK(written.find("bias: no") != std::string::npos);
    auto const before = bench.finished();
    CHECK(before.size() == 2);
    CHECK(test::run_heed({"run", (bench.small / "ablation.yaml").string(), "--output", bench.runs.string(), "--quiet"}).code == 0);
    CHECK(bench.finished() == before);
  }

  TEST_CASE("probes.npz: an array [seed, step, layer, head] for each arm and probe") {
    Bench const bench;
    CHECK(bench
              .run({"--quiet", "model.layers=2", "train.steps=4", "vary={model.attention: [scaled, dot]}", "seeds=3",
                    "probes={every: 2, attention: [entropy, sink_rate], activations: [rms], gradients: [norm_by_layer]}"})
              .code == 0);
    auto const arrays = read_npz(bench.small / "probes.npz");
    auto const shape = [&](std::string const& name) {
      REQUIRE_MESSAGE(arrays.contains(name), name);
      return to_string(arrays.at(name).tensor().shape());
    };
    auto const steps = arrays.at("dot/probe.attention.entropy.steps").tensor().to_vector();
    auto const count = std::to_string(steps.size());
    CHECK(steps.size() >= 2);
    CHECK(shape("dot/probe.attention.entropy") == "[3, " + count + ", 2, 2]");
    CHECK(shape("dot/probe.activations.rms") == "[3, " + count + ", 2]");
    CHECK(shape("dot/probe.attention.sink_rate") == "[3, " + count + "]");
    CHECK(shape("dot/probe.attention.sink_rate.layers") == "[3, " + count + ", 2]");
    auto const entropy = arrays.at("dot/probe.attention.entropy").tensor();
    auto const folders = bench.summary()["arms"][1]["folders"];
    std::int64_t at = 0;
    for (auto const& folder : folders) {
      auto const history = read_history(bench.small / folder.get<std::string>());
      for (std::size_t step = 0; step < steps.size(); ++step)
        for (char const* place : {"layer0.head0", "layer0.head1", "layer1.head0", "layer1.head1"})
          CHECK(entropy.at(at++) == history.at(std::string("probe.attention.entropy.") + place)[step].second);
    }
    for (auto const& each : arrays) CHECK_MESSAGE(each.first.find(".head") == std::string::npos, each.first);
  }

  TEST_CASE("a plan counts, measures and warns, and writes nothing") {
    Bench const bench;
    auto arguments = bench.command();
    arguments.front() = "plan";
    auto const outcome = test::run_heed(arguments);
    CHECK(outcome.code == 0);
    CHECK(outcome.output.find("3 arms, 6 runs") != std::string::npos);
    CHECK(outcome.output.find("cannot show any difference at p ≤ 0.05; 6 seeds can") != std::string::npos);
    CHECK(!fs::exists(bench.runs));
  }

  TEST_CASE("a plan of an arm that cannot be trained ends with that arm's exit code, and makes no step of the others") {
    Bench const bench;
    auto arguments = bench.command(
        {"vary={data: [{kind: recall, pairs: 2, keys: 4, values: 4}, {kind: text, path: nowhere.txt}]}", "baseline=text-nowhere.txt"});
    arguments.front() = "plan";
    auto const outcome = test::run_heed(arguments);
    CHECK(outcome.output.find("an arm cannot be trained, and heed run would train none") != std::string::npos);
    CHECK(outcome.output.find("  0.0") == std::string::npos);  // seconds of a step
    CHECK(outcome.code == 3);
    CHECK(outcome.errors.find("nowhere.txt: no such file") != std::string::npos);
    CHECK(outcome.output.find("cannot be trained") != std::string::npos);
    CHECK(outcome.output.find("\nabout ") == std::string::npos);
  }

  TEST_CASE("a warm-up that is longer than the run is told, once for all arms, by run, check and of one run alone") {
    Bench const bench;
    auto const count = [](std::string const& text) {
      std::size_t found = 0;
      for (auto at = text.find("ends before its warm-up"); at != text.npos; at = text.find("ends before its warm-up", at + 1)) ++found;
      return found;
    };
    Arguments const long_warmup{"train.schedule={kind: cosine, warmup: 50}", "seeds=1"};
    auto arguments = bench.command(long_warmup);
    arguments.front() = "check";
    auto const checked = test::run_heed(arguments);
    CHECK(checked.code == 0);
    CHECK(count(checked.errors) == 1);
    CHECK(checked.errors.find("argument 'train.schedule={kind: cosine, warmup: 50}': train.schedule.warmup: the training ends before its "
                              "warm-up: after 40 steps") != std::string::npos);
    CHECK(count(bench.run(long_warmup).errors) == 1);
    CHECK(count(bench.run({"--quiet", "train.schedule={kind: cosine, warmup: 51}", "seeds=1"}).errors) == 0);
    auto const base = (bench.folder / "base.yaml").string();
    for (char const* command : {"check", "run"})
      CHECK(count(test::run_heed({command, base, "name=one", "train.schedule.warmup=50", "--output", bench.runs.string()}).errors) == 1);
    CHECK(count(test::run_heed({"check", base, "train.schedule.warmup=39"}).errors) == 0);
  }

  TEST_CASE("an ablation's folder is none of a run: three of its trials are named") {
    Bench const bench;
    CHECK(bench.run({"--quiet", "train.steps=1"}).code == 0);
    for (std::string const command : {"sample", "evaluate", "translate"}) {
      if (command == "translate" && !test::has_room("translation")) continue;
      test::refuses({command, bench.small.string()}, 3,
                    {"small: is the folder of an ablation: name one of its trials, such as ", "additive-seed1-", "additive-seed2-",
                     "hard-seed1-", " (and 3 more)"});
    }
    test::refuses({"sample", bench.runs.string()}, 3, {"holds no checkpoint"});
    fs::rename(bench.small / "ablation.yaml", bench.small / "kept.yaml");
    test::refuses({"sample", bench.small.string()}, 3, {"is the folder of several runs: name one of them, such as "});
  }

  TEST_CASE("an arm that cannot be trained here is told before anything trains, with its name") {
    Bench const bench;
    Arguments const missing{"vary={data: [{kind: recall, pairs: 2, keys: 4, values: 4}, {kind: text, path: nowhere.txt}]}",
                            "baseline=recall-2-4-4"};
    auto outcome = bench.run(missing);
    CHECK(outcome.code == 3);
    CHECK(outcome.errors.find("nowhere.txt: no such file") != std::string::npos);
    CHECK(outcome.errors.find("(arm 'text-nowhere.txt')") != std::string::npos);
    CHECK(!fs::exists(bench.small));
    auto arguments = bench.command(missing);
    arguments.front() = "check";
    CHECK(test::run_heed(arguments).code == 3);
    outcome = bench.run({"vary={model.width: [16, 65536]}", "baseline=16", "model.layers=64", "--quiet"});
    CHECK(outcome.code == 2);
    CHECK(outcome.errors.find("(arm '65536')") != std::string::npos);
  }

  TEST_CASE("a metric that runs do not record is named with those that they do") {
    Bench const bench;
    auto const outcome = bench.run({"metric=validation.excess", "seeds=1", "vary={model.attention: [scaled, dot]}"});
    CHECK(outcome.code == 4);
    CHECK(outcome.errors.find("its metrics hold no 'validation.excess' (there are ") != std::string::npos);
  }

  TEST_CASE("a metric of which more is better: the verdict, the tables and tuning go upwards") {
    Bench const bench;
    auto const outcome = bench.run({"metric=validation.exact", "vary={model.attention: [scaled, dot]}", "train.optimizer.kind=adamw",
                                    "train.steps=120", "train.batch=8", "tune={grid: {train.optimizer.lr: [1.0e-7, 1.0e-2]}, seeds: 1}"});
    INFO(outcome.errors);
    CHECK(outcome.code == 0);
    CHECK(outcome.output.find("validation.exact (last, higher is better)") != std::string::npos);
    auto const summary = bench.summary();
    CHECK(summary["better"] == "higher");
    CHECK(summary["unit"] == "");
    for (auto const& arm : summary["arms"]) CHECK(arm["tuned"]["train.optimizer.lr"] == "1.0e-2");
  }
}
