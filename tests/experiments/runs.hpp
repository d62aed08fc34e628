#pragma once

#include "experiments/commands/commands.hpp"
#include "tests/json.hpp"
#include "tests/program.hpp"

// Runs of one configuration, by the program or in this process.

namespace heed::test {

/// A folder with the configuration `tiny.yaml` of a run with this name, and the run that the program makes of it.
struct ProgramRun {
  explicit ProgramRun(std::string const& config, std::vector<std::string> options) : always(std::move(options)) {
    put(folder / "tiny.yaml", config);
  }
  std::vector<std::string> command(std::vector<std::string> const& more = {}) const {
    return joined(joined({"run", (folder / "tiny.yaml").string(), "--output", output.string()}, always), more);
  }
  void train(std::vector<std::string> const& more = {}) const { run_well(command(more)); }
  Json summary() const { return summary_of(run); }

  std::vector<std::string> always;  ///< arguments of every command line
  Folder folder;
  std::filesystem::path output = folder / "runs", run = output / "tiny";
};

/// Starts the program and kills it so many seconds later.
inline void kill_after(double seconds, std::vector<std::string> const& arguments) {
  Program program(arguments);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  program.send(SIGKILL);
  program.wait();
}

/// Sends it a signal as soon as this file exists, and waits for its end.
inline void end_at(std::filesystem::path const& file, std::vector<std::string> const& arguments, int signal = SIGKILL) {
  Program program(arguments);
  if (program.wait_until([&] { return std::filesystem::exists(file); })) program.send(signal);
  program.wait();
}

/// How many rows of metrics a run has written; 0 where there are none yet.
inline Index rows_in(std::filesystem::path const& run) {
  std::ifstream file(run / "metrics.jsonl");
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

/// Begins a run and ends it by a signal when it has written at least so many rows, but not all; how it ended.
inline Outcome cut_off(ProgramRun const& run, Index rows, int signal, std::vector<std::string> const& more = {}) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::filesystem::remove_all(run.output);
    Program program(run.command(more));
    if (!program.wait_until([&] { return rows_in(run.run) >= rows; })) continue;
    program.send(signal);
    auto outcome = program.wait();
    if (outcome.code != 0) return outcome;  // 0: it was done before the signal came
  }
  FAIL("the run always ends too soon");
  return {};
}

/// Options to run a configuration in this process.
inline RunOptions quiet_run(Folder const& folder, std::string const& file, std::vector<std::string> overrides = {}) {
  RunOptions options;
  options.config = folder / file;
  options.overrides = std::move(overrides);
  options.folders.output = folder / "runs";
  options.quiet = true;
  return options;
}

/// Uniform in [0, 1), different in every run of the tests.
inline double random_share() {
  static std::random_device device;
  return std::uniform_real_distribution<>(0, 1)(device);
}

}  // namespace heed::test
