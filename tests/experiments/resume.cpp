#include <sys/mount.h>
#include <sys/resource.h>

#include "nn/files/checkpoint.hpp"
#include "tests/experiments/runs.hpp"
#include "tests/experiments/trace.hpp"

// A run that was cut off, however and wherever, and run again leaves what a run leaves that never was: the same rows (but for what
// may differ, time and memory), the same checkpoint and state, byte for byte, and no other file.

using namespace heed;
using test::check_equal, test::trace_of;
namespace fs = std::filesystem;

namespace {

#ifndef NDEBUG
constexpr int kills = 2;  // everything is slow
constexpr char const* batch = "train.batch=1";
#else
constexpr int kills = 10;
constexpr char const* batch = "train.batch=4";
#endif

constexpr char const* tiny_gpt = R"(
name: tiny
seed: 3
data: {kind: grammar, validation: 16, ngram_sentences: 50}
model: {kind: gpt, layers: 2, heads: 2, width: 32, context: 32, dropout: 0.1}
train:
  {steps: 60, accumulate: 2, optimizer: {kind: adamw, lr: 1.0e-3, weight_decay: 0.1}, clip: 1.0, ema: 0.9, evaluate: {every: 20},
   schedule: {kind: cosine, warmup: 10, min_lr: 1.0e-4}, checkpoint: {every: 10}}
)";

using Arguments = std::vector<std::string>;

struct CutRuns : test::ProgramRun {
  CutRuns() : ProgramRun(tiny_gpt, {"--threads", "2", "--quiet", batch}) {}
  Arguments loud_command() const {
    auto arguments = command();
    std::erase(arguments, "--quiet");
    return arguments;
  }
  void refuses(Arguments const& more, int code, Arguments const& words, std::function<void()> const& prepare = {}) const {
    test::refuses(command(more), code, words, prepare);
  }
};

/// The run that nothing disturbs, and how long it takes.
struct Undisturbed {
  test::Trace trace;
  double seconds;
};

Undisturbed measure(Arguments const& more = {}) {
  CutRuns const runs;
  double const seconds = test::seconds_of([&] { runs.train(more); });
  return {trace_of(runs.run), seconds};
}

Undisturbed const& undisturbed() {
  static Undisturbed const once = measure();
  return once;
}

/// Runs to the end, which must be the undisturbed run's.
void check_finishes(CutRuns const& runs, test::Trace const& expected = undisturbed().trace, Arguments const& more = {}) {
  auto const outcome = test::run_heed(runs.command(more));
  CHECK(outcome.code == 0);
  CHECK(outcome.errors == "");
  check_equal(trace_of(runs.run), expected);
}

constexpr Index cut_after = 25;  // steps of 60

/// A run that SIGINT has ended on the way, copied into the folder.
void begin_by_copy(CutRuns const& runs) {
  static CutRuns const begun;
  static int const code = test::cut_off(begun, cut_after, SIGINT).code;
  REQUIRE(code == 130);
  fs::copy(begun.output, runs.output, fs::copy_options::recursive);
}

/// For a child: files cannot grow beyond so many bytes, and a write that tries to fails.
std::function<void()> file_limit(rlim_t bytes, sighandler_t told = SIG_IGN) {
  return [=] {
    rlimit const limit{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, told);
  };
}

std::map<std::string, std::pair<std::string, fs::file_time_type>> snapshot(fs::path const& folder) {
  std::map<std::string, std::pair<std::string, fs::file_time_type>> files;
  for (auto const& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != ".lock")  // it names its last holder
      files[entry.path().string()] = {test::get(entry.path()), entry.last_write_time()};
  return files;
}

struct InCutRuns {
  CutRuns const runs;
};

}  // namespace

TEST_SUITE("resume") {
  TEST_CASE("two undisturbed runs are equal") { check_equal(measure().trace, undisturbed().trace); }

  TEST_CASE("killed at random moments, each time run again to the end") {
    for (int i = 0; i < kills; ++i) {
      CutRuns const runs;
      double const moment = test::random_share() * undisturbed().seconds;
      CAPTURE(moment);
      test::kill_after(moment, runs.command());
      check_finishes(runs);
    }
  }

  TEST_CASE_FIXTURE(InCutRuns, "killed again and again, then run to the end") {
    for (int i = 0; i < kills; ++i) test::kill_after((0.1 + 0.5 * test::random_share()) * undisturbed().seconds, runs.command());
    check_finishes(runs);
  }

  TEST_CASE("killed while a file is being written or replaced") {
    for (std::string const name :
         {".config.yaml.part", ".state-20.safetensors.part", "state-20.safetensors", ".checkpoint.safetensors.part"}) {
      CAPTURE(name);
      CutRuns const runs;
      test::end_at(runs.run / name, runs.command());
      check_finishes(runs);
    }
  }

  TEST_CASE("signals that ask for an end finish the step, make a checkpoint and exit with 130") {
    for (int const signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
      CAPTURE(signal);
      CutRuns const runs;
      auto const outcome = test::cut_off(runs, cut_after, signal);
      CHECK(outcome.code == 130);
      CHECK(outcome.errors == "");
      CHECK(load_checkpoint(runs.run).step == test::rows_in(runs.run));  // nothing is lost
      CHECK(!fs::exists(runs.run / "summary.json"));
      check_finishes(runs);
    }
  }

  TEST_CASE("a terminal that is closed ends a run as SIGHUP does") {
    for (int attempt = 0;; ++attempt) {
      REQUIRE(attempt < 20);
      CutRuns const runs;
      int const terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
      REQUIRE(terminal >= 0);
      REQUIRE((::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0));
      std::string const name = ::ptsname(terminal);
      test::Program program(runs.loud_command(), [name] {
        ::setsid();
        int const end = ::open(name.c_str(), O_RDWR);  // it becomes the session's terminal
        for (int const stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(end, stream);
      });
      bool const running = program.wait_until([&] { return test::rows_in(runs.run) >= 25; });
      ::close(terminal);
      auto const code = program.wait().code;
      if (!running || code == 0) continue;  // it was done before
      CHECK(code == 130);
      CHECK(load_checkpoint(runs.run).step == test::rows_in(runs.run));
      check_finishes(runs);
      break;
    }
  }

  TEST_CASE("signals that are ignored, as nohup has SIGHUP, end nothing") {
    for (int const signal : {SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU}) {
      CAPTURE(signal);
      CutRuns const runs;
      test::Program program(runs.command(), [signal] { ::signal(signal, SIG_IGN); });
      REQUIRE(program.wait_until([&] { return test::rows_in(runs.run) > 2; }));
      program.send(signal);
      CHECK(program.wait().code == 0);
      check_equal(trace_of(runs.run), undisturbed().trace);
    }
  }

  TEST_CASE("a file that may not grow is told, and does not end the program by a signal") {
    for (rlim_t const bytes : {rlim_t{1000}, rlim_t{20000}}) {
      CAPTURE(bytes);
      CutRuns().refuses({}, 1, {"File too large"}, file_limit(bytes, SIG_DFL));
    }
  }

  TEST_CASE("closed standard streams: nothing is printed into the run's files") {
    for (unsigned closed = 1; closed < 8U; ++closed) {  // a bit each
      CAPTURE(closed);
      CutRuns const runs;
      test::run_well(runs.loud_command(), [closed] {
        for (int const stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
          if ((closed >> stream & 1U) != 0) ::close(stream);
      });
      auto const lock = test::get(runs.run / ".lock");  // the last holder's line
      CHECK(lock.find('\n') + 1 == lock.size());
      check_equal(trace_of(runs.run), undisturbed().trace);
    }
  }

  TEST_CASE_FIXTURE(InCutRuns, "what a kill leaves half done is taken back") {
    begin_by_copy(runs);
    auto const step = load_checkpoint(runs.run).step;
    auto const at = [&](Index later) { return std::to_string(step + later); };
    std::string const rows = test::get(runs.run / "metrics.jsonl");
    SUBCASE("a state whose checkpoint was not written") {
      test::put(runs.run / ("state-" + at(3) + ".safetensors"), test::get(runs.run / ("state-" + at(0) + ".safetensors")));
    }
    SUBCASE("parts of states") {
      test::put(runs.run / (".state-" + at(2) + ".safetensors.part"), "half");
      test::put(runs.run / ".checkpoint.safetensors.part", "half");
      test::put(runs.run / "state-1.safetensors", "an old one");
    }
    SUBCASE("a torn line") { test::put(runs.run / "metrics.jsonl", rows + "{\"step\": " + at(0) + ", \"lo"); }
    SUBCASE("a torn line of zeros") { test::put(runs.run / "metrics.jsonl", rows + std::string(300, '\0')); }
    SUBCASE("rows after the checkpoint") {
      test::put(runs.run / "metrics.jsonl", rows + "{\"step\": " + at(0) + ", \"loss\": 1}\n{\"step\": " + at(1) + ", \"loss\": 2}\n{\"st");
    }
    SUBCASE("all of it") {
      test::put(runs.run / ("state-" + at(7) + ".safetensors"), "torn");
      test::put(runs.run / "metrics.jsonl", rows + "{\"step\": " + at(0) + ", \"loss\": \"NaN\"}\n{\"step\": " + at(1));
    }
    SUBCASE("a summary of fewer steps, or half of one") { test::put(runs.run / "summary.json", "{\"finished\": true, \"steps\": "); }
    check_finishes(runs);
  }

  TEST_CASE_FIXTURE(InCutRuns, "a page that a killed process had begun to write is written, and what it had written goes") {
    runs.train({});
    auto const finished = trace_of(runs.run);
    fs::rename(runs.run / "report.html", runs.run / ".report.html.part");
    runs.train({});
    check_equal(trace_of(runs.run), finished);
  }

  TEST_CASE_FIXTURE(InCutRuns, "a finished run says so and is left as it is") {
    test::run_well(runs.loud_command());
    auto const before = snapshot(runs.output);
    auto const outcome = test::run_well(runs.loud_command());
    CHECK(outcome.output.find("finished already, 60 steps") != std::string::npos);
    CHECK(outcome.errors == "");
    CHECK((snapshot(runs.output) == before));
    check_equal(trace_of(runs.run), undisturbed().trace);

    // Without its summary, or with a damaged one, it is only summarised again.
    for (auto const* const summary : {"", "{}", "[1]", "{\"finished\": \"yes\", \"steps\": [60]}", "\xff\xfe"}) {
      test::put(runs.run / "summary.json", summary);
      check_finishes(runs);
      CHECK(runs.summary()["steps"] == 60);
    }
  }

  TEST_CASE_FIXTURE(InCutRuns, "more steps go on from the end; the rows are those of a run that was meant to be as long") {
    Arguments const steady{"train.schedule=constant", "train.steps=40"}, short_one{"train.schedule=constant", "train.steps=15"};
    runs.train(short_one);
    CHECK(load_checkpoint(runs.run).step == 15);
    check_finishes(runs, measure(steady).trace, steady);
    runs.refuses(short_one, 2, {"another configuration", "train.steps"});

    // Its clock goes on too.
    double last = 0;
    for (auto const& row : test::json_rows(runs.run / "metrics.jsonl")) {
      if (!row.contains("time.seconds")) continue;
      CHECK(row["time.seconds"] > last);
      last = row["time.seconds"];
    }
    CHECK(runs.summary()["time.seconds"] > last);
  }

  TEST_CASE_FIXTURE(InCutRuns, "more steps are refused where the updates that were made would have had other learning rates") {
    runs.train({"train.steps=15"});
    auto const before = snapshot(runs.output);
    runs.refuses({"train.steps=40"}, 2,
                 {runs.run.string(), "trained 15 of 15 steps", "learning rate of step 11", "depends on train.steps", "--fresh"});
    CHECK((snapshot(runs.output) == before));

    CutRuns const warming;  // in the warm-up nothing depends on the end
    warming.train({"train.steps=10"});
    check_finishes(warming);

    Arguments const noam{"train.schedule={kind: noam, warmup: 8}", "train.steps=40"};
    CutRuns const endless;
    endless.train({noam[0], "train.steps=15"});
    check_finishes(endless, measure(noam).trace, noam);
  }

  TEST_CASE_FIXTURE(InCutRuns, "another configuration, machine or thread count is refused, and nothing is changed") {
    begin_by_copy(runs);
    auto const before = snapshot(runs.output);
    runs.refuses({"train.steps=59"}, 2, {runs.run.string(), "what differs: train.steps"});
    runs.refuses({"seed=4", "model.dropout=0.2", "train.steps=70"}, 2, {"what differs: seed, model.dropout ("});
    runs.refuses({"--threads", "1"}, 2, {"2 threads", "1 threads", "--fresh"});
    runs.refuses({"--threads", "1", "train.steps=70"}, 2, {"2 threads", "1 threads", "--fresh"});
    CHECK((snapshot(runs.output) == before));
    fs::rename(runs.run / "config.yaml", runs.folder / "aside.yaml");
    runs.refuses({}, 2, {runs.run.string(), "config.yaml"});
    fs::rename(runs.folder / "aside.yaml", runs.run / "config.yaml");
    check_finishes(runs);
  }

  TEST_CASE_FIXTURE(InCutRuns, "a key that did not exist yet when a run was begun has its default") {
    begin_by_copy(runs);
    auto config = test::get(runs.run / "config.yaml");
    std::string const key = ", metrics: []";
    REQUIRE(config.find(key) != std::string::npos);
    config.erase(config.find(key), key.size());
    test::put(runs.run / "config.yaml", config);
    runs.refuses({"train.evaluate.metrics=[perplexity]"}, 2, {"what differs: train.evaluate.metrics"});
    check_finishes(runs);
  }

  TEST_CASE_FIXTURE(InCutRuns, "--fresh puts the old folder aside") {
    begin_by_copy(runs);
    auto const before = snapshot(runs.run);
    runs.refuses({"--fresh", "data.path=missing.yaml"}, 3, {"missing.yaml"});
    CHECK((snapshot(runs.run) == before));
    check_finishes(runs, undisturbed().trace, {"--fresh"});
    CHECK(snapshot(runs.output / "tiny.old-1").size() == before.size());
    check_finishes(runs, undisturbed().trace, {"--fresh"});
    check_equal(trace_of(runs.output / "tiny.old-2"), undisturbed().trace);
  }

  TEST_CASE_FIXTURE(InCutRuns, "one process at a time works in a folder") {
    Arguments const endless{"train.steps=100000"};
    test::Program program(runs.command(endless));
    REQUIRE(program.wait_until([&] { return test::rows_in(runs.run) >= 1; }));
    for (auto const& more : {endless, test::joined(endless, {"--fresh"})}) runs.refuses(more, 2, {runs.run.string(), "another process"});
    program.send(SIGTERM);
    CHECK(program.wait().code == 130);
  }

  TEST_CASE("a full disk ends in one line, with the last checkpoint whole; with room the run goes on to the same bytes") {
    CutRuns const runs;
    SUBCASE("at the first checkpoint") {
      runs.refuses({}, 1, {"state-10.safetensors: cannot be written", "no checkpoint"}, file_limit(8'000));
      CHECK(!has_checkpoint(runs.run));
    }
    SUBCASE("at the first row") { runs.refuses({}, 1, {"cannot be written"}, file_limit(1'000)); }
    SUBCASE("at once") { runs.refuses({}, 1, {"config.yaml: cannot be written"}, file_limit(500)); }
    auto const refuses_later = [&](std::string const& said, bool at_row) {
      begin_by_copy(runs);
      auto const step = load_checkpoint(runs.run).step;
      // There is room for less than a row, which comes before the next state.
      auto const room = at_row ? fs::file_size(runs.run / "metrics.jsonl") + 20 : 200'000;
      runs.refuses({}, 1, {said, "cannot be written", "the last checkpoint is whole"}, file_limit(room));
      CHECK(load_checkpoint(runs.run).step == step);
    };
    SUBCASE("at the state of a later checkpoint") { refuses_later("state-", false); }
    SUBCASE("at a row") { refuses_later("metrics.jsonl: cannot be written", true); }
    SUBCASE("on a file system of 800 KB") {
      fs::create_directory(runs.output);
      if (::mount("tmpfs", runs.output.c_str(), "tmpfs", 0, "size=800k") != 0) return;  // only root may, and not everywhere
      auto const outcome = test::run_heed(runs.command());
      auto const step = has_checkpoint(runs.run) ? load_checkpoint(runs.run).step : -1;
      ::mount("tmpfs", runs.output.c_str(), "tmpfs", MS_REMOUNT, "size=8m");
      auto const again = test::run_heed(runs.command());
      std::optional<test::Trace> trace;
      if (again.code == 0) trace = trace_of(runs.run);
      REQUIRE(::umount2(runs.output.c_str(), MNT_DETACH) == 0);
      test::check_refused(outcome, 1, {"cannot be written: No space left on device", "the last checkpoint is whole"});
      CHECK(step == 10);
      CHECK(again.errors == "");
      REQUIRE(trace);
      check_equal(*trace, undisturbed().trace);
      return;
    }
    check_finishes(runs);
  }

  TEST_CASE_FIXTURE(InCutRuns, "one thread, rows now and then, no averages") {
    Arguments const other{"--threads", "1", "train.log.every=7", "train.ema=none", "train.optimizer={kind: sgd, lr: 0.1}"};
    auto const expected = measure(other).trace;
    for (int i = 0; i < 2; ++i) test::kill_after((0.2 + 0.5 * test::random_share()) * undisturbed().seconds, runs.command(other));
    check_finishes(runs, expected, other);
  }
}
