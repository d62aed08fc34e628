#include <sys/mount.h>
#include <sys/stat.h>

#include "experiments/folder/folder.hpp"
#include "experiments/metric/info.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/small_ablation.hpp"
#include "tests/rooms.hpp"

// An ablation, through the real program: its trials are processes, its tables are those of an undisturbed one however often it was killed,
// and a trial that fails leaves the others whole.

using namespace heed;
namespace fs = std::filesystem;

namespace {

using Bench = test::SmallAblation;
using Programs = std::vector<std::unique_ptr<test::Program>>;
using test::Arguments, test::check_ends, test::check_holds, test::check_untouched, test::OneAblation;

Arguments const tuned{"--quiet", "tune={grid: {train.optimizer.lr: [1.0e-2, 1.0e-7]}, seeds: 1}"};  // 6 trials beside the 6

/// The tuned ablation by one process.
Bench const& alone() {
  static Bench const bench;
  static auto const outcome = test::run_well(bench.command(tuned));
  return bench;
}

Programs started(Bench const& bench, std::size_t count) {
  Programs programs;
  for (std::size_t i = 0; i < count; ++i) programs.push_back(std::make_unique<test::Program>(bench.command(tuned)));
  return programs;
}

/// All programs end well, and leave what one alone leaves.
void check_as_alone(Bench const& bench, Programs const& programs) {
  for (auto const& program : programs) check_ends(program->wait(), 0);
  CHECK(bench.finished().size() == 12);
  CHECK(bench.rows() == alone().rows());
  CHECK(bench.summary()["failures"].empty());
  for (std::size_t i = 0; i < 3; ++i) CHECK(bench.summary()["arms"][i]["tuned"] == alone().summary()["arms"][i]["tuned"]);
}

}  // namespace

TEST_SUITE("ablation") {
  TEST_CASE_FIXTURE(OneAblation,
                    "a plan writes nothing; an ablation leaves its tables, is compared by its arms, and a second call runs nothing again") {
    check_holds(test::run_well(test::as("plan", bench.command())).output,
                {"3 arms, 6 runs", "cannot show any difference at p ≤ 0.05; 6 seeds can"});
    CHECK(!fs::exists(bench.runs));
    check_holds(test::run_well(bench.command()).output, {"additive"});
    auto const summary = bench.summary();
    CHECK(summary["arms"].size() == 3);
    CHECK(summary["seeds"] == test::Json::array({1, 2}));
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
    check_holds(test::get(bench.small / "summary.md"), {"| additive |"});

    check_holds(test::run_well({"compare", "small", "--output", bench.runs.string()}).output,
                {"small/scaled", "small/additive", "small/hard", "model.attention.score"});
    test::refuses({"compare", (bench.small / bench.finished().begin()->first).string()}, 2, {"there is only one run"});

    auto const rows = bench.rows();
    CHECK(rows.front() == "arm,model.attention,seed,step,metric,value");
    auto const before = bench.finished();
    CHECK(before.size() == 6);
    CHECK(bench.run().code == 0);
    CHECK(bench.finished() == before);
    CHECK(bench.rows() == rows);

    // A changed file runs what changed, and only that.
    CHECK(bench.run({"vary={model.attention: [scaled, dot]}"}).code == 0);
    auto const after = bench.finished();
    CHECK(after.size() == 8);
    check_untouched(before, after);
    CHECK(bench.summary()["arms"][1]["name"] == "dot");
  }

  TEST_CASE("killed at any moment, parent alone or with its children, it ends as if it never was") {
    Bench const whole, cut;
    CHECK(whole.run({"--quiet"}).code == 0);
    std::mt19937 random(1);
    auto done = cut.finished();
    for (int i = 0; i < 5; ++i) {
      test::Program const program(cut.command({"--quiet"}), [] { ::setpgid(0, 0); });
      std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution(5, 150)(random)));
      i % 2 == 0 ? program.send(SIGKILL) : program.send_to_group(SIGKILL);
      auto const now = cut.finished();
      check_untouched(done, now);
      done = now;
    }
    check_ends(cut.run({"--quiet"}), 0);
    CHECK(cut.rows() == whole.rows());
    check_untouched(done, cut.finished());
  }

  TEST_CASE_FIXTURE(
      OneAblation,
      "an arm that fails leaves the others whole, is named with step and operation, and is not trained to the same NaN again") {
    Arguments const wild{"vary={train.optimizer.lr: [0.001, 1.0e+9]}", "baseline=0.001", "train.log.every=1"};
    check_ends(bench.run(wild), 4, {"failed: step "});
    auto const summary = bench.summary();
    CHECK(summary["arms"][0]["values"].size() == 2);
    REQUIRE(summary["failures"].size() == 2);
    auto const& failure = summary["failures"][0];
    check_holds(failure["message"], {"NaN"});
    CHECK(!failure["log"].empty());
    auto const folder = bench.small / failure["folder"].get<std::string>(), record = folder / "failure.json", log = folder / "log.txt";
    CHECK(fs::exists(record));
    CHECK(!fs::exists(folder / "summary.json"));
    auto const before = test::get(log);
    auto const again = bench.run(wild);
    CHECK(again.code == 4);
    CHECK(test::get(log) == before);
    check_holds(again.output, {"2 failed trials not trained again"});
    fs::last_write_time(record, fs::file_time_type::clock::now() - std::chrono::hours(24 * 365));
    bench.run(wild);
    CHECK(test::get(log) != before);  // that failure was another program's
    fs::remove(record);               // a record that cannot be read is none
    REQUIRE(::mkfifo(record.c_str(), 0600) == 0);
    CHECK(bench.run(test::joined(wild, {"--quiet"})).code == 4);
  }

  TEST_CASE_FIXTURE(OneAblation, "tuning chooses for each arm on seeds of its own") {
    check_ends(bench.run(test::joined(tuned, {"vary={model.attention: [scaled, dot]}"})), 0);
    auto const summary = bench.summary();
    for (auto const& arm : summary["arms"]) CHECK(arm["tuned"]["train.optimizer.lr"] == "1.0e-2");
    CHECK(summary["sentences"][0].get<std::string>().starts_with("dot (lr 1.0e-2) and scaled (lr 1.0e-2): "));
    check_holds(test::get(bench.small / "summary.md"), {" MB | tuned |", "| lr 1.0e-2 |"});
    CHECK(bench.finished().size() == 4 + 4);
  }

  TEST_CASE_FIXTURE(OneAblation, "while it runs, the report shows what has ended, and says how much that is") {
    Arguments const slow{"train.steps=400", "--jobs", "1"};
    test::Program running(bench.command(slow));
    CHECK(running.wait_until([&] { return fs::exists(bench.small / "report.html"); }));
    CHECK(running.wait_until([&] { return bench.finished().size() >= 2; }));
    check_ends(test::run_heed({"report", "small", "--output", bench.runs.string()}), 0);
    auto const done = bench.summary()["trials_done"].get<int>();
    CHECK(bench.summary()["trials_of"] == 6);
    CHECK((done >= 2 && done < 6));
    check_holds(test::get(bench.small / "report.html"), {std::to_string(done) + " of 6 trials", "http-equiv=\"refresh\""});
    running.send(SIGTERM);
    CHECK(running.wait().code == 130);
    CHECK(bench.run(slow).code == 0);
    CHECK(bench.summary()["trials_done"] == 6);
    CHECK(test::get(bench.small / "report.html").find("http-equiv=\"refresh\"") == std::string::npos);
  }

  TEST_CASE_FIXTURE(OneAblation, "a gnuplot that hangs does not keep an ablation from ending") {
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

  TEST_CASE_FIXTURE(OneAblation,
                    "the saved ablation.yaml runs again from anywhere: nothing is left to do, whatever has become of the base") {
    CHECK(bench.run({"--quiet", "train.steps=20"}).code == 0);
    auto const before = bench.finished();
    test::Folder const elsewhere;
    fs::copy_file(bench.small / "ablation.yaml", elsewhere / "saved.yaml");
    Arguments const saved{"run", (elsewhere / "saved.yaml").string(), "--output", bench.runs.string(), "--quiet"};
    for (char const* changed : {"model: {kind: bert}\n", ""}) {
      test::put(bench.folder / "base.yaml", changed);
      check_ends(test::run_heed(saved), 0);
    }
    fs::remove(bench.folder / "base.yaml");
    check_ends(test::run_heed(saved), 0);
    CHECK(bench.finished() == before);
  }

  TEST_CASE("processes that run one ablation at once share all of its trials, and come to one choice and one table") {
    CHECK(alone().starts() == std::map<std::string, std::size_t>{{"once", 12}});
    for (std::size_t const count : {2U, 3U}) {
      CAPTURE(count);
      Bench const bench;
      check_as_alone(bench, started(bench, count));
      CHECK(bench.starts() == alone().starts());
    }
  }

  TEST_CASE("a process that is stopped keeps nobody from ending, wherever it is stopped") {
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
      check_ends(other.wait(), 0);
      CHECK(stopped.wait().code == 0);
      CHECK(bench.starts() == alone().starts());
      CHECK(bench.rows() == alone().rows());
    }
  }

  TEST_CASE("one stopped for a while and another killed: one table, that of a single process") {
    for (std::size_t const count : {2U, 3U, 5U}) {
      CAPTURE(count);
      Bench const bench;
      auto programs = started(bench, count);
      CHECK(programs.front()->wait_until([&] { return bench.finished().size() >= 2; }));
      programs.front()->send(SIGSTOP);
      if (count > 2) {
        programs.back()->send(SIGKILL);
        programs.pop_back();
      }
      std::this_thread::sleep_for(std::chrono::seconds(2));
      programs.front()->send(SIGCONT);
      check_as_alone(bench, programs);
    }
  }

  TEST_CASE_FIXTURE(OneAblation, "a trial that another process holds is waited for, and is no failure") {
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
    check_ends(program.wait(), 0);
    CHECK(bench.summary()["failures"].empty());
    CHECK(bench.rows() == rows);
  }

  TEST_CASE_FIXTURE(OneAblation, "an ablation that is running is neither put aside nor joined by another version of it") {
    test::Program running(bench.command({"train.steps=4000"}));
    CHECK(running.wait_until([&] { return fs::exists(bench.small / "ablation.yaml"); }));
    check_ends(bench.run({"train.steps=4000", "--fresh"}), 2, {"another process is training in this folder"});
    for (char const* change : {"seeds=3", "train.steps=41"})
      check_ends(bench.run({change}), 2, {"another process is running another version of this ablation here"});
    CHECK(!fs::exists(bench.runs / "small.old-1"));
    // Its trials may outlive it: they are looked for at any depth.
    test::Program below(bench.command({"ablation=small/nested", "train.steps=4000", "--quiet"}));
    CHECK(below.wait_until([&] { return fs::exists(bench.small / "nested" / "ablation.yaml"); }));
    running.send(SIGTERM);
    CHECK(running.wait().code == 130);
    check_ends(bench.run({"train.steps=4000", "--fresh"}), 2, {"another process is training in this folder"});
    below.send(SIGTERM);
    CHECK(below.wait().code == 130);
    CHECK(bench.run({"train.steps=2", "--fresh", "--quiet"}).code == 0);
    CHECK(fs::exists(bench.runs / "small.old-1"));
  }

  TEST_CASE_FIXTURE(OneAblation, "a tuning trial that fails is told in table, page and exit code, and its point is out") {
    auto const outcome = bench.run(
        {"vary={model.attention: [scaled, dot]}", "train.log.every=1", "tune={grid: {train.optimizer.lr: [1.0e+9, 1.0e-2]}, seeds: 1}"});
    check_ends(outcome, 4);
    check_holds(outcome.output, {"failed: dot 1.0e+9 (tuning), seed 10001: step "});
    auto const summary = bench.summary();
    for (auto const& arm : summary["arms"]) CHECK(arm["tuned"]["train.optimizer.lr"] == "1.0e-2");
    REQUIRE(summary["failures"].size() == 2);
    CHECK(summary["failures"][1]["arm"] == "dot 1.0e+9 (tuning)");
    check_holds(test::get(bench.small / "summary.md"), {"**failed**: dot 1.0e+9 (tuning)"});
    check_holds(test::get(bench.small / "report.html"), {"dot 1.0e+9 (tuning)"});
  }

  TEST_CASE_FIXTURE(OneAblation, "an arm that no point of the grid trains leaves the others their results") {
    check_ends(bench.run({"--quiet", "vary={train.clip: [1.0, none]}", "seeds=1", "baseline=1.0",
                          "add={wild: {train.optimizer.lr: 1.0e+9}}", "tune={grid: {train.batch: [2, 4]}, seeds: 1}"}),
               4);
    auto const summary = bench.summary();
    CHECK(summary["arms"][0]["values"].size() == 1);
    CHECK(summary["arms"][2]["values"].empty());
    check_holds(summary["warnings"].dump(), {"wild: at no point of the tuning grid does training end"});
  }

  TEST_CASE_FIXTURE(OneAblation, "ablation.yaml quotes what other readers would take for truth values, and is the same ablation" *
                                     test::needs("translation")) {
    for (char const* language : {"no", "on", "de"}) test::put(bench.folder / (std::string("text.") + language), "a b c\nb c a\n");
    test::put(bench.folder / "base.yaml",
              "data: {kind: parallel, train: text, from: no, to: de, least_count: 1}\n"
              "model: {kind: transformer, layers: 1, heads: 1, width: 4, context: 8, bias: no}\ntrain: {steps: 1, batch: 2}\n");
    Arguments const changes{
        "vary={data.from: [no, on], train.optimizer.lr: [1e-3]}", "baseline={data.from: no}", "seeds=1", "metric=loss", "--quiet",
        "set={model.tie: off, data.vocabularies: joint}"};
    CHECK(bench.run(changes).code == 0);
    check_holds(test::get(bench.small / "ablation.yaml"),
                {"vary: {data.from: [\"no\", \"on\"], train.optimizer.lr: [1.e-3]}", "baseline: {data.from: \"no\"}",
                 "model.tie: off",  // a switch, for every reader
                 "data: {kind: parallel, train: text, from: \"no\",", "bias: no"});
    auto const before = bench.finished();
    CHECK(before.size() == 2);
    CHECK(test::run_heed({"run", (bench.small / "ablation.yaml").string(), "--output", bench.runs.string(), "--quiet"}).code == 0);
    CHECK(bench.finished() == before);
  }

  TEST_CASE_FIXTURE(OneAblation, "a warm-up that is longer than the run is told, once for all arms, by run, check and of one run alone") {
    auto const count = [](std::string const& text) { return test::occurrences(text, "ends before its warm-up"); };
    Arguments const long_warmup{"train.schedule={kind: cosine, warmup: 50}", "seeds=1"};
    auto const checked = test::run_well(test::as("check", bench.command(long_warmup))).errors;
    CHECK(count(checked) == 1);
    check_holds(checked, {"argument 'train.schedule={kind: cosine, warmup: 50}': train.schedule.warmup: the training ends before its "
                          "warm-up: after 40 steps"});
    CHECK(count(bench.run(long_warmup).errors) == 1);
    CHECK(count(bench.run({"--quiet", "train.schedule={kind: cosine, warmup: 51}", "seeds=1"}).errors) == 0);
    auto const base = (bench.folder / "base.yaml").string();
    for (char const* command : {"check", "run"})
      CHECK(count(test::run_heed({command, base, "name=one", "train.schedule.warmup=50", "--output", bench.runs.string()}).errors) == 1);
    CHECK(count(test::run_heed({"check", base, "train.schedule.warmup=39"}).errors) == 0);
  }

  TEST_CASE_FIXTURE(OneAblation, "an ablation's folder is none of a run: three of its trials are named") {
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

  TEST_CASE_FIXTURE(OneAblation,
                    "an arm that cannot be trained here is told with its name before anything trains; of a plan it is the exit code") {
    Arguments const missing{"vary={data: [{kind: recall, pairs: 2, keys: 4, values: 4}, {kind: text, path: nowhere.txt}]}"};
    auto const planned = test::run_heed(test::as("plan", bench.command(test::joined(missing, {"baseline=text-nowhere.txt"}))));
    check_ends(planned, 3, {"nowhere.txt: no such file"});
    check_holds(planned.output, {"an arm cannot be trained, and heed run would train none"});
    CHECK(planned.output.find("  0.0") == std::string::npos);  // seconds of a step
    CHECK(planned.output.find("\nabout ") == std::string::npos);
    auto const other = test::joined(missing, {"baseline=recall-2-4-4"});
    check_ends(bench.run(other), 3, {"nowhere.txt: no such file", "(arm 'text-nowhere.txt')"});
    CHECK(!fs::exists(bench.small));
    CHECK(test::run_heed(test::as("check", bench.command(other))).code == 3);
    check_ends(bench.run({"vary={model.width: [16, 65536]}", "baseline=16", "model.layers=64", "--quiet"}), 2, {"(arm '65536')"});
  }

  TEST_CASE_FIXTURE(OneAblation, "a metric that runs do not record is named with those that they do") {
    Arguments const never{"metric=validation.excess", "seeds=1", "vary={model.attention: [scaled, dot]}"};
    for (std::string const command : {"check", "plan", "run"})
      check_ends(test::run_heed(test::as(command, bench.command(never))), 2, {"metric: this run records no validation.excess"});
    CHECK(!fs::exists(bench.small));
  }

  TEST_CASE_FIXTURE(test::InFolder, "a metric is refused before training exactly if a run does not record it, in check as in run") {
    std::string const gpt = "model: {kind: gpt, layers: 1, heads: 1, width: 8, ", train = "train: {steps: 1, batch: 2}\n";
    for (auto const& each : std::map<std::string, std::string>{
             {"recall", "data: {kind: recall, pairs: 2, keys: 4, values: 4, validation: 4}\n" + gpt +
                            "context: 8}\ntrain: {steps: 1, batch: 2, ema: 0.9}\nprobes: {attention: [entropy, sink_rate]}\n"},
             {"grammar", "data: {kind: grammar, validation: 12, ngram_sentences: 50}\n" + gpt + "context: 32}\n" + train},
             {"topic", "data: {kind: topic}\nmodel: {kind: bag_of_words, width: 8, context: 64}\n" + train}}) {
      std::string const& name = each.first;
      CAPTURE(name);
      auto const rows = test::json_rows(test::trained(folder, name, each.second) / "metrics.jsonl");
      for (auto const& metric : Registry<MetricInfo>::names()) {
        if (metric.find('*') != metric.npos) continue;
        bool const recorded = std::ranges::any_of(rows, [&](auto const& row) { return row.contains(metric); });
        test::put(folder / "two.yaml", fmt::format("ablation: two\nbase: {}.yaml\nvary: {{train.batch: [2, 3]}}\nmetric: {}\n{}", name,
                                                   metric, find_metric(metric)->better ? "" : "better: lower\n"));
        CHECK_MESSAGE((test::run_heed({"check", folder / "two.yaml"}).code == 0) == recorded, metric);
      }
    }
  }

  TEST_CASE_FIXTURE(OneAblation, "a sweep stops at the first trial for which there is no space on the disk") {
    fs::create_directories(bench.runs);
    if (::mount("tmpfs", bench.runs.c_str(), "tmpfs", 0, "size=60k") != 0) return;  // only root may, and not everywhere
    auto const outcome = bench.run({"--quiet", "--jobs", "1"});
    ::mount("tmpfs", bench.runs.c_str(), "tmpfs", MS_REMOUNT, "size=80m");
    std::size_t begun = 0;
    for (auto const& entry : fs::directory_iterator(bench.small)) begun += fs::exists(entry.path() / "log.txt") ? 1 : 0;
    auto const again = bench.run({"--quiet"});
    auto const finished = bench.finished().size();
    ::umount2(bench.runs.c_str(), MNT_DETACH);
    check_ends(outcome, 1, {"no space left on the disk: no further one is begun"});
    CHECK(begun == 1);
    check_ends(again, 0);
    CHECK(finished == 6);
  }
}
