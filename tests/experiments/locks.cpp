#include <ctime>

#include "experiments/folder/folder.hpp"
#include "experiments/folder/result_file.hpp"
#include "experiments/program/failure.hpp"
#include "tests/program.hpp"
#include "tests/refusal.hpp"

// Locks on folders, and why a process that holds one is to stop. tests/cluster/sweep.sh has many processes with kills and stops.

using namespace heed;
namespace fs = std::filesystem;

namespace {

using Mode = FolderLock::LockMode;

std::optional<FolderLock> shared(fs::path const& folder) { return FolderLock::attempt(folder, ".lock", Mode::shared); }

template <class F>
pid_t in_child(F f) {
  pid_t const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(f());
  return child;
}

int exit_code(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// A child that holds the folder's lock, and is stopped.
pid_t stopped_holder(fs::path const& folder) {
  pid_t const child = in_child([&] {
    auto const lock = FolderLock::attempt(folder);
    ::raise(SIGSTOP);
    return lock ? 0 : 1;
  });
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  REQUIRE(WIFSTOPPED(status));
  return child;
}

}  // namespace

TEST_SUITE("locks") {
  TEST_CASE_FIXTURE(test::InFolder, "one holds a folder alone, which its lock names, until it lets go") {
    auto const run = folder / "a/run";
    {
      auto const lock = FolderLock::attempt(run);
      REQUIRE(lock);
      CHECK_FALSE(FolderLock::attempt(run));
      CHECK_FALSE(shared(run));
      CHECK(FolderLock::attempt(run, ".other.lock"));
      auto const holder = holder_of(run);
      REQUIRE(holder);
      CHECK(holder->process == ::getpid());
      CHECK(test::refusal<FolderError>([&] { FolderLock const second(run); }) ==
            run.string() + ": another process is training in this folder (" + holder->text() + ")");
    }
    CHECK_FALSE(holder_of(run));
    CHECK_FALSE(holder_of(folder / "nowhere"));
    CHECK_FALSE(fs::exists(folder / "nowhere"));
    CHECK(FolderLock::attempt(run));
  }

  TEST_CASE_FIXTURE(test::InFolder, "many share a folder; nobody holds it alone meanwhile") {
    auto alone = FolderLock::attempt(folder.path());
    REQUIRE(alone);
    alone->share();
    auto const other = shared(folder.path());
    CHECK(other);
    alone.reset();
    CHECK_FALSE(FolderLock::attempt(folder.path()));
  }

  TEST_CASE_FIXTURE(test::InFolder, "who is stopped keeps its lock; who is killed gives it up, though nobody has waited for it") {
    pid_t const child = stopped_holder(folder.path());
    CHECK_FALSE(FolderLock::attempt(folder.path()));
    CHECK(holder_of(folder.path())->process == child);
    ::kill(child, SIGKILL);
    siginfo_t state{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOWAIT) == 0);
    CHECK(FolderLock::attempt(folder.path()));
    CHECK(exit_code(child) == -SIGKILL);
    pid_t const woken = stopped_holder(folder.path());
    ::kill(woken, SIGCONT);
    CHECK(exit_code(woken) == 0);
  }

  TEST_CASE_FIXTURE(test::InFolder, "a lock file that says nothing is a lock too") {
    auto const lock = FolderLock::attempt(folder.path());
    for (std::string const text : {"", "node7", "node7 x\n"}) {
      test::put(folder / ".lock", text);
      CHECK(holder_of(folder.path())->text() == "a process on another machine");
    }
    test::put(folder / ".lock", "node7 4711\n");
    CHECK(holder_of(folder.path())->text() == "process 4711 on node7");
  }

  TEST_CASE_FIXTURE(test::InFolder, "a folder is not put aside while somebody works in it, or anywhere inside") {
    auto const outer = folder / "ablation";
    auto inner = FolderLock::attempt(outer / "nested/trial");
    REQUIRE(inner);
    auto const text = test::refusal<FolderError>([&] { put_aside(outer); });
    CHECK(text.find("nested/trial: another process is training in this folder") != text.npos);
    inner.reset();
    put_aside(outer);
    CHECK(folder.names() == std::vector<std::string>{"ablation.old-1"});
    CHECK(FolderLock::attempt(outer));
  }

  TEST_CASE("why a process is to stop: by its signal, and by how much of a job's time is left") {
    auto const reason = [](int signal, std::optional<std::time_t> seconds_left = {}) {
      return static_cast<StopReason>(exit_code(in_child([&] {
        if (seconds_left) ::setenv("SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + *seconds_left).c_str(), 1);
        note_signals();
        ::raise(signal);
        return static_cast<int>(stop_reason());
      })));
    };
    using enum StopReason;
    CHECK((reason(SIGINT) == asked && reason(SIGINT, 100) == asked));
    for (int const signal : {SIGTERM, SIGHUP}) CHECK(reason(signal) == preempted);
    for (int const signal : {SIGUSR1, SIGUSR2, SIGXCPU}) CHECK(reason(signal) == out_of_time);
    CHECK(reason(SIGUSR1, 3600) == preempted);
    CHECK(reason(SIGTERM, 100) == out_of_time);
  }

  TEST_CASE_FIXTURE(test::InFolder, "interruptions are counted apart, and a damaged record counts anew") {
    record_interruption(folder.path(), StopReason::asked);
    CHECK(folder.names().empty());
    for (auto const reason : {StopReason::preempted, StopReason::out_of_time, StopReason::out_of_time})
      record_interruption(folder.path(), reason);
    CHECK((interruptions_of(folder.path()).preempted == 1 && interruptions_of(folder.path()).timed_out == 2));
    test::put(folder / "interruptions.json", "{\"preempted\": \"x\"}");
    CHECK(interruptions_of(folder.path()).preempted == 0);
    record_interruption(folder.path(), StopReason::preempted);
    CHECK(interruptions_of(folder.path()).preempted == 1);
    test::put(folder / "summary.json", "{\"interruptions\": {\"preempted\": 5, \"timed_out\": 6}}");
    CHECK(interruptions_of(folder.path()).preempted == 1);
    forget_interruptions(folder.path());
    CHECK(interruptions_of(folder.path()).timed_out == 6);
  }
}
