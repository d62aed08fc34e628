#pragma once

#include <chrono>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/folder.hpp"

namespace heed::test {

/// How a program ended, and what it said.
struct Outcome {
  int code = -1;  ///< exit code, or −signal
  std::string output, errors;
};

/// The program `heed` that was built beside the tests, as a process.
class Program {
 public:
  /// Starts it. `prepare` runs in the child before the program does (limits, another user) and may only make system calls.
  explicit Program(std::vector<std::string> const& arguments, std::function<void()> const& prepare = {}) {
    static auto const heed = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "heed").string();
    std::vector<char*> argv{const_cast<char*>(heed.c_str())};
    for (auto const& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    auto const output = (folder_ / "output").string(), errors = (folder_ / "errors").string();
    put(output, ""), put(errors, "");  // a child may be killed before it has opened them
    process_ = ::fork();
    REQUIRE(process_ >= 0);
    if (process_ != 0) return;
    int const out = ::open(output.c_str(), O_WRONLY), err = ::open(errors.c_str(), O_WRONLY);
    if (out < 0 || err < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0) ::_exit(126);
    if (prepare) prepare();
    ::execv(argv.front(), argv.data());
    ::_exit(127);
  }
  Program(Program const&) = delete;
  Program& operator=(Program const&) = delete;
  ~Program() {
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  void send(int signal) const { REQUIRE(::kill(process_, signal) == 0); }

  /// The same to the process group that it leads.
  void send_to_group(int signal) const { REQUIRE(::kill(-process_, signal) == 0); }

  Outcome wait() {
    int status = 0;
    REQUIRE(::waitpid(process_, &status, 0) == process_);
    process_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), get(folder_ / "output"), get(folder_ / "errors")};
  }

  /// Waits until something is so; false if the program has ended before or half a minute has passed.
  bool wait_until(std::function<bool()> const& so) const {
    for (int i = 0; i < 300'000; ++i) {
      if (so()) return true;
      siginfo_t state{};
      if (::waitid(P_PID, static_cast<id_t>(process_), &state, WEXITED | WNOHANG | WNOWAIT) == 0 && state.si_pid != 0) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return false;
  }

 private:
  Folder folder_;
  ::pid_t process_ = -1;
};

inline Outcome run_heed(std::vector<std::string> const& arguments, std::function<void()> const& prepare = {}) {
  return Program(arguments, prepare).wait();
}

/// Runs it to its end, which must be a good one.
inline Outcome run_well(std::vector<std::string> const& arguments, std::function<void()> const& prepare = {}) {
  auto const outcome = run_heed(arguments, prepare);
  INFO(outcome.errors);
  REQUIRE(outcome.code == 0);
  return outcome;
}

/// How many seconds an action takes.
inline double seconds_of(std::function<void()> const& action) {
  auto const start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline std::vector<std::string> joined(std::vector<std::string> all, std::vector<std::string> const& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// The program has refused, with this code, in one line that holds all the words.
inline void check_refused(Outcome const& outcome, int code, std::vector<std::string> const& words) {
  INFO(outcome.errors);
  CHECK(outcome.code == code);
  CHECK(outcome.errors.starts_with("heed: "));
  CHECK(std::count(outcome.errors.begin(), outcome.errors.end(), '\n') == 1);
  CHECK(outcome.errors.ends_with("\n"));
  CHECK(outcome.errors.size() < 1000);
  for (auto const& word : words) CHECK_MESSAGE(outcome.errors.find(word) != std::string::npos, "lacks: " << word);
}
inline void refuses(std::vector<std::string> const& arguments, int code, std::vector<std::string> const& words,
                    std::function<void()> const& prepare = {}) {
  check_refused(run_heed(arguments, prepare), code, words);
}

}  // namespace heed::test
