#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "experiments/ablation/job_script.hpp"
#include "experiments/ablation/jobs.hpp"
#include "experiments/run/interruptions.hpp"
#include "tests/environment.hpp"
#include "tests/experiments/small_ablation.hpp"
#include "tests/program.hpp"

// An ablation on a cluster: the scripts that batch systems are given, where a process begins, what heed watch shows.

using namespace heed;
using test::Arguments;
namespace fs = std::filesystem;

namespace {

SweepPlan example() {
  return {.name = "My_sweep, ü",
          .command = {"/opt/heed", "run", "a b.yaml", "model.attention={score: dot, scale: it's}"},
          .folder = "/data/of me",
          .trials = 24,
          .tasks = 5,
          .threads = 2,
          .longest = 3000,
          .seconds = 60'000,
          .bytes = 1e9,
          .machine = "a processor"};
}

/// What a shell makes of a text, where `replaced` commands print their words, a line each.
std::string by_shell(std::string const& text, std::vector<std::string> const& replaced, test::Folder const& folder) {
  std::string functions;
  for (auto const& name : replaced) functions += name + "() { printf '<%s>' \"$@\"; echo; }\n";
  test::put(folder / "script", functions + text);
  REQUIRE(std::system(fmt::format("bash {0}/script > {0}/said 2>&1", folder.path().string()).c_str()) == 0);
  return test::get(folder / "said");
}

}  // namespace

TEST_SUITE("sweep") {
  TEST_CASE("limits of a task: half as much time again, a quarter more memory") {
    CHECK(time_limit(example()) == 300 + 1.5 * 3000 * 5);
    CHECK(memory_limit(example()) == 6 * 256.0 * (1 << 20));
  }

  TEST_CASE("the script for Slurm runs the command as it was given") {
    test::Folder const folder;
    auto const script = slurm_script(example());
    for (char const* line : {"#SBATCH --job-name=my-sweep\n", "#SBATCH --array=0-4\n", "#SBATCH --cpus-per-task=2\n",
                             "#SBATCH --mem=1536M\n", "#SBATCH --time=06:20:00\n", "#SBATCH --signal=USR1@120\n", "#SBATCH --requeue\n"})
      CHECK_MESSAGE(script.find(line) != std::string::npos, line);
    CHECK(by_shell(script, {"srun"}, folder) == "</opt/heed><run><a b.yaml><model.attention={score: dot, scale: it's}>\n");
  }

  TEST_CASE("lines for GNU parallel, one for each task") {
    test::Folder const folder;
    auto plan = example();
    plan.command.front() = "program";
    plan.folder = folder.path().string();
    std::string expected;
    for (int i = 1; i <= 5; ++i)
      expected += fmt::format("<run><a b.yaml><model.attention={{score: dot, scale: it's}}><--shard><{}/5>\n", i);
    CHECK(by_shell(parallel_jobs(plan), {"program"}, folder) == expected);
  }

  TEST_CASE("the Job for Kubernetes is YAML with the command and the limits") {
    auto const job = YAML::Load(kubernetes_job(example()));
    CHECK(job["kind"].as<std::string>() == "Job");
    CHECK(job["metadata"]["name"].as<std::string>() == "my-sweep");
    CHECK(job["spec"]["completions"].as<int>() == 5);
    CHECK(job["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"][0].as<int>() == 130);
    auto const container = job["spec"]["template"]["spec"]["containers"][0];
    CHECK(container["command"].as<std::vector<std::string>>() == example().command);
    CHECK(container["workingDir"].as<std::string>() == "/data/of me");
    CHECK(container["resources"]["limits"]["memory"].as<std::string>() == "1536Mi");
  }

  TEST_CASE("heed plan writes them for the trials that are left") {
    test::SmallAblation const bench;
    auto arguments = bench.command({"--slurm"});
    arguments.front() = "plan";
    auto const plan = test::run_heed(arguments);
    INFO(plan.errors);
    CHECK(plan.code == 0);
    CHECK(plan.output.find("#SBATCH --array=0-5\n") != std::string::npos);
    CHECK_FALSE(fs::exists(bench.runs));
    arguments.back() = "--parallel";
    arguments.insert(arguments.end(), {"--tasks", "2"});
    test::Folder const folder;
    test::put(folder / "jobs", test::run_heed(arguments).output);
    CHECK(std::system(fmt::format("sh {0}/jobs > {0}/said 2>&1", folder.path().string()).c_str()) == 0);
    CHECK(bench.finished().size() == 6);
    arguments[arguments.size() - 3] = "--slurm";
    CHECK(test::run_heed(arguments).output.find("# 0 trials") != std::string::npos);
  }

  TEST_CASE("a process begins where its number in an array says, but for --shard") {
    auto const begin = [](RunOptions const& options = {}) {
      auto const workers = workers_for(options);
      return std::pair(workers.shard, workers.shards);
    };
    CHECK(begin() == std::pair<std::int64_t, std::int64_t>(1, 1));
    {
      test::Environment const index("SLURM_ARRAY_TASK_ID", "7"), first("SLURM_ARRAY_TASK_MIN", "5"), count("SLURM_ARRAY_TASK_COUNT", "4");
      CHECK(begin() == std::pair<std::int64_t, std::int64_t>(3, 4));
      RunOptions options;
      options.shard = 2;
      options.shards = 9;
      CHECK(begin(options) == std::pair<std::int64_t, std::int64_t>(2, 9));
      test::Environment const odd("SLURM_ARRAY_TASK_ID", "70");  // an array of 5, 70, …: no share of anything
      CHECK(begin() == std::pair<std::int64_t, std::int64_t>(1, 1));
    }
    test::Environment const index("JOB_COMPLETION_INDEX", "11");
    CHECK(begin() == std::pair<std::int64_t, std::int64_t>(12, 0));
    test::SmallAblation const bench;
    CHECK(bench.run({"--quiet", "--jobs", "1"}).code == 0);  // 12 of 6 trials
    CHECK(bench.finished().size() == 6);
  }

  TEST_CASE("heed watch: what others train, what has ended, what timed out") {
    test::SmallAblation const bench;
    CHECK(test::run_heed({"watch", bench.small.string(), "--once"}).code == 2);
    CHECK(bench.run({"--quiet"}).code == 0);
    auto const watch = [&](Arguments const& more) {
      Arguments all{"watch", "small", "--output", bench.runs.string(), "--once"};
      all.insert(all.end(), more.begin(), more.end());
      return test::run_heed(all);
    };
    CHECK(watch({}).output.starts_with("small: 6/6 runs\n"));

    auto const name = bench.finished().begin()->first;
    fs::path const trial = bench.small / name;
    fs::remove(trial / "summary.json");
    test::put(trial / ".lock.claim-1",
              nlohmann::json{{"host", "node<7>"}, {"process", 1}, {"machine", "another"}, {"lapses", 60}}.dump() + "\n");
    for (int i = 0; i < 3; ++i) record_interruption(trial, StopReason::out_of_time);
    record_interruption(trial, StopReason::preempted);
    auto const names = [&] {
      std::vector<std::string> all;
      for (auto const& entry : fs::recursive_directory_iterator(bench.small)) all.push_back(entry.path().string());
      std::ranges::sort(all);
      return all;
    };
    auto const before = names();
    auto const outcome = watch({});
    CHECK(names() == before);
    CHECK(outcome.code == 0);
    CHECK(outcome.output.starts_with("small: 5/6 runs, 1 in other processes, "));
    CHECK(outcome.output.find("100 % on node<7>") != std::string::npos);
    CHECK(outcome.output.find(name + " timed out 3 times: ") != std::string::npos);
    CHECK(outcome.output.find("(preempted 1 times besides)") != std::string::npos);

    CHECK(watch({"--page"}).code == 0);
    auto const page = test::get(bench.small / "watch.html");
    CHECK(page.find("http-equiv=\"refresh\" content=\"5\"") != std::string::npos);
    CHECK(page.find("node&lt;7&gt;") != std::string::npos);
    CHECK(page.find(" timed out 3 times: ") != std::string::npos);
    fs::remove(trial / ".lock.claim-1");
    auto const again = bench.run({});
    CHECK(again.code == 0);
    CHECK(again.output.find(name + " timed out 3 times: ") != std::string::npos);
  }

  TEST_CASE("a trial that a signal stops is counted by its kind, and goes on") {
    for (int const signal : {SIGTERM, SIGUSR1, SIGINT}) {
      CAPTURE(signal);
      test::SmallAblation const bench;
      auto const arguments = bench.command({"--quiet", "--jobs", "1", "train.steps=20000", "train.log.every=100"});
      {
        test::Program program(arguments);
        auto const began = [&] {
          std::error_code missing;
          for (auto const& entry : fs::directory_iterator(bench.small, missing))
            if (fs::exists(entry.path() / "checkpoint.safetensors")) return true;
          return false;
        };
        REQUIRE(program.wait_until(began));
        program.send(signal);
        CHECK(program.wait().code == 130);
      }
      Interruptions all;
      for (auto const& entry : fs::directory_iterator(bench.small)) {
        auto const counts = interruptions_of(entry.path());
        all.preempted += counts.preempted;
        all.timed_out += counts.timed_out;
      }
      CHECK(all.preempted == (signal == SIGTERM ? 1 : 0));
      CHECK(all.timed_out == (signal == SIGUSR1 ? 1 : 0));
    }
  }
}
