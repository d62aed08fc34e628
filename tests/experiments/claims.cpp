#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiments/run/claim.hpp"
#include "experiments/run/folder.hpp"
#include "experiments/run/interruptions.hpp"
#include "experiments/run/session.hpp"
#include "experiments/run/signals.hpp"
#include "tests/folder.hpp"
#include "tests/program.hpp"
#include "tests/refusal.hpp"

// Claims on folders, as they stand where flock() says yes to everybody: tests/cluster/claims.sh has many processes with kills and stops.

using namespace heed;
namespace fs = std::filesystem;

namespace {

struct Place {
  test::Folder folder;
  int clock = ::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  Place() = default;
  Place(Place const&) = delete;
  Place& operator=(Place const&) = delete;
  ~Place() { ::close(clock); }

  std::optional<Claim> attempt(Claim::LockMode mode = Claim::LockMode::alone) const {
    return Claim::attempt(folder.path(), ".lock", mode, clock);
  }
  /// What a process of another machine has left, that was last heard of so long ago.
  void put_claim(std::string const& name, int seconds_ago) const {
    fs::path const file = folder / name;
    test::put(file,
              nlohmann::json{{"host", "node7"}, {"process", 4711}, {"began", 1}, {"machine", "another"}, {"lapses", 60}}.dump() + "\n");
    timespec const then{std::time(nullptr) - seconds_ago, 0};
    timespec const times[]{then, then};
    REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
  }
};

/// Runs f in a child, whose exit code it gives.
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

}  // namespace

TEST_SUITE("claims") {
  TEST_CASE("one holds a claim alone, and its file goes with it") {
    Place const place;
    {
      auto const claim = place.attempt();
      REQUIRE(claim);
      CHECK(place.folder.names() == std::vector<std::string>{".lock", ".lock.claim-1"});
      CHECK_FALSE(place.attempt());
      CHECK_FALSE(place.attempt(Claim::LockMode::shared));
      auto const holders = claim_holders(place.folder.path());
      REQUIRE(holders.size() == 1);
      CHECK(holders[0].process == ::getpid());
      CHECK(holders[0].here);
      CHECK(holders[0].alive);
      CHECK_FALSE(claim->lost());
    }
    CHECK(place.folder.names() == std::vector<std::string>{".lock"});
    CHECK(place.attempt());
  }

  TEST_CASE("many share a claim; nobody holds it alone meanwhile") {
    Place const place;
    auto alone = place.attempt();
    REQUIRE(alone);
    REQUIRE(alone->share());
    auto const other = place.attempt(Claim::LockMode::shared);
    CHECK(other);
    CHECK_FALSE(place.attempt());
    alone.reset();
    CHECK_FALSE(place.attempt());
  }

  TEST_CASE("a claim of a process of this machine that has ended is taken over at once") {
    Place const place;
    CHECK(exit_code(in_child([&] {
            auto const claim = place.attempt();
            ::raise(SIGKILL);
            return claim ? 0 : 1;
          })) == -SIGKILL);
    CHECK(fs::exists(place.folder / ".lock.claim-1"));
    CHECK_FALSE(claim_holders(place.folder.path()).at(0).alive);
    auto const claim = place.attempt();
    REQUIRE(claim);
    CHECK(place.folder.names() == std::vector<std::string>{".lock", ".lock.claim-2"});
  }

  TEST_CASE("a process that has ended does not live, though its parent has not waited for it") {
    Place const place;
    pid_t const child = in_child([&] {
      auto const claim = place.attempt();
      ::raise(SIGKILL);
      return claim ? 0 : 1;
    });
    siginfo_t state{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOWAIT) == 0);
    CHECK(place.attempt());
    CHECK(exit_code(child) == -SIGKILL);
  }

  TEST_CASE("another machine's claim holds until it has been silent for as long as it says") {
    Place const place;
    place.put_claim(".lock.claim-3", 50);
    CHECK_FALSE(place.attempt());
    CHECK(claim_holders(place.folder.path()).at(0).text().starts_with("process 4711 on node7, last heard of 5"));
    place.put_claim(".lock.claim-3", 62);
    auto const claim = place.attempt();
    REQUIRE(claim);
    CHECK(place.folder.names() == std::vector<std::string>{".lock", ".lock.claim-4"});
  }

  TEST_CASE("a file that says nothing, or not all, is another machine's") {
    Place const place;
    for (std::string const text : {"", "{\"host\": \"no", "[]\n", "{\"host\": 3}\n"}) {
      CAPTURE(text);
      test::put(place.folder / ".lock.claim-1", text);
      CHECK_FALSE(place.attempt());
      timespec const times[]{{std::time(nullptr) - 100, 0}, {std::time(nullptr) - 100, 0}};
      REQUIRE(::utimensat(AT_FDCWD, (place.folder / ".lock.claim-1").c_str(), times, 0) == 0);
      CHECK(place.attempt());
    }
  }

  TEST_CASE("a file that was being written when its process was killed is no claim, and goes") {
    Place const place;
    test::put(place.folder / ".lock.claim-part-node7-1-1", "{\"host");
    timespec const times[]{{std::time(nullptr) - 100, 0}, {std::time(nullptr) - 100, 0}};
    REQUIRE(::utimensat(AT_FDCWD, (place.folder / ".lock.claim-part-node7-1-1").c_str(), times, 0) == 0);
    test::put(place.folder / ".lock.claim-part-node8-1-1", "");
    auto const claim = place.attempt();
    REQUIRE(claim);
    CHECK(place.folder.names() == std::vector<std::string>{".lock", ".lock.claim-1", ".lock.claim-part-node8-1-1"});
    CHECK(claim_holders(place.folder.path()).size() == 1);
  }

  TEST_CASE("a process in the place of another with its number is not that one") {
    Place const place;
    {
      auto const claim = place.attempt();
      auto line = nlohmann::json::parse(test::get(place.folder / ".lock.claim-1"));
      line["began"] = line["began"].get<std::int64_t>() - 1;
      test::put(place.folder / ".lock.claim-9", line.dump() + "\n");
    }
    CHECK(place.attempt());
  }

  TEST_CASE("who was stopped for too long finds out that its claim is taken") {
    Place const place;
    for (bool const taken : {false, true}) {
      CAPTURE(taken);
      pid_t const child = in_child([&] {
        ::setenv("HEED_CLAIM_LAPSES", "1", 1);
        auto const claim = place.attempt();
        if (!claim || claim->lost()) return 1;
        ::raise(SIGSTOP);
        return claim->lost() ? 3 : 2;
      });
      int status = 0;
      REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
      REQUIRE(WIFSTOPPED(status));
      ::sleep(2);
      if (taken) place.put_claim(".lock.claim-2", 0);
      ::kill(child, SIGCONT);
      CHECK(exit_code(child) == (taken ? 3 : 2));
    }
  }

  TEST_CASE("who was stopped before it began to write in a folder leaves what another process has written there") {
    test::Folder const folder;
    test::put(folder / "run.yaml",
              "name: run\ndata: {kind: recall, pairs: 1, keys: 2, values: 2, validation: 4}\n"
              "model: {kind: gpt, layers: 1, heads: 1, width: 8, context: 4}\ntrain: {steps: 6, batch: 2, checkpoint: {every: 2}}\n");
    Places places;
    places.output = folder.path();
    auto experiment = load_experiment(folder / "run.yaml", {}, places);
    auto const run = folder / "run";
    REQUIRE(train(experiment, true, false) == Exit::done);
    fs::remove(run / "summary.json");  // the other process is at its last step
    auto const content = [&] {
      std::map<std::string, std::string> files;
      for (auto const& entry : fs::directory_iterator(run)) files[entry.path().filename().string()] = test::get(entry.path());
      return files;
    };
    pid_t const child = in_child([&] {
      ::setenv("HEED_CLAIM_LAPSES", "1", 1);
      FolderLock const lock(run);
      ::raise(SIGSTOP);
      auto const text = test::refusal<FolderError>([&] { train(experiment, true, lock); });
      return text.find(": another process has taken this folder over while this one was stopped") != text.npos && lock.lost() ? 0 : 1;
    });
    int status = 0;
    REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
    REQUIRE(WIFSTOPPED(status));
    ::sleep(2);
    test::put(run / ".lock.claim-2", "{\"host\": \"node7\"}\n");
    test::put(run / ".config.yaml.part", "the other process writes it");
    auto before = content();
    ::kill(child, SIGCONT);
    CHECK(exit_code(child) == 0);
    before.erase(".lock.claim-1");
    CHECK((content() == before));
  }

  TEST_CASE("a heart beats while a process does something else") {
    Place const place;
    CHECK(exit_code(in_child([&] {
            ::setenv("HEED_CLAIM_LAPSES", "1", 1);
            auto const claim = place.attempt();
            auto const time = [&] { return fs::last_write_time(place.folder / ".lock.claim-1"); };
            auto const before = time();
            auto const end = std::chrono::steady_clock::now() + std::chrono::milliseconds(600);
            while (std::chrono::steady_clock::now() < end) continue;
            return time() > before ? 0 : 1;
          })) == 0);
  }

  TEST_CASE("what a child has locked stays locked until its parent has closed the file too, stopped or not") {
    test::Folder const folder;
    auto file = std::make_optional<LockFile>(folder.path());
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_t const child = in_child([&] {
      auto const lock = FolderLock::attempt(std::move(*file));
      [[maybe_unused]] auto const told = ::write(ends[1], lock ? "y" : "n", 1);
      ::pause();
      return 0;
    });
    char said = 0;
    REQUIRE(::read(ends[0], &said, 1) == 1);
    CHECK(said == 'y');
    CHECK(is_held(folder.path()));
    CHECK_FALSE(FolderLock::attempt(folder.path()));
    ::kill(child, SIGKILL);
    CHECK(exit_code(child) == -SIGKILL);
    CHECK_FALSE(is_held(folder.path()));
    CHECK_FALSE(FolderLock::attempt(folder.path()));
    file.reset();
    CHECK(FolderLock::attempt(folder.path()));
    ::close(ends[0]);
    ::close(ends[1]);
  }

  TEST_CASE("a file that is no longer in place locks nothing") {
    test::Folder const folder;
    LockFile file(folder / "run");
    fs::rename(folder / "run", folder / "run.old-1");
    CHECK_FALSE(FolderLock::attempt(std::move(file)));
    CHECK(FolderLock::attempt(folder / "run"));
  }

  TEST_CASE("the message of a folder that is held names who holds it") {
    test::Folder const folder;
    FolderLock const lock(folder.path());
    auto const text = test::refusal<FolderError>([&] { FolderLock const second(folder.path()); });
    CHECK(text.find("another process is training in this folder (process ") != std::string::npos);
  }

  TEST_CASE("why a process is to stop: by its signal, and by how much of a job's time is left") {
    auto const reason = [](int signal, char const* seconds_left) {
      return exit_code(in_child([&] {
        if (seconds_left != nullptr)
          ::setenv("SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + std::atoi(seconds_left)).c_str(), 1);
        note_signals();
        ::raise(signal);
        return static_cast<int>(stop_reason());
      }));
    };
    auto const asked = static_cast<int>(StopReason::asked), preempted = static_cast<int>(StopReason::preempted),
               out_of_time = static_cast<int>(StopReason::out_of_time);
    CHECK(reason(SIGINT, nullptr) == asked);
    CHECK(reason(SIGTERM, nullptr) == preempted);
    CHECK(reason(SIGHUP, nullptr) == preempted);
    for (int const signal : {SIGUSR1, SIGUSR2, SIGXCPU}) CHECK(reason(signal, nullptr) == out_of_time);
    CHECK(reason(SIGUSR1, "3600") == preempted);
    CHECK(reason(SIGTERM, "100") == out_of_time);
    CHECK(reason(SIGINT, "100") == asked);
  }

  TEST_CASE("interruptions are counted apart, and a damaged record counts anew") {
    test::Folder const folder;
    record_interruption(folder.path(), StopReason::asked);
    CHECK(folder.names().empty());
    for (auto const reason : {StopReason::preempted, StopReason::out_of_time, StopReason::out_of_time})
      record_interruption(folder.path(), reason);
    CHECK(interruptions_of(folder.path()).preempted == 1);
    CHECK(interruptions_of(folder.path()).timed_out == 2);
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
