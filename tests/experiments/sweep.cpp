#include "experiments/ablation/ablation.hpp"
#include "experiments/ablation/plan.hpp"
#include "experiments/folder/folder.hpp"
#include "experiments/folder/result_file.hpp"
#include "tests/environment.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/small_ablation.hpp"

// An ablation on a cluster: the script that Slurm is given, shards, what heed watch shows.

using namespace heed;
using test::Arguments;
namespace fs = std::filesystem;

namespace {

SweepPlan example() {
  return {.name = "My_sweep, ü",
          .command = {"/opt/heed", "run", "a b.yaml", "model.attention={score: dot, scale: it's}"},
          .output = "/data/of me",
          .trials = 24,
          .tasks = 5,
          .share = 5,
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

  TEST_CASE_FIXTURE(test::InFolder, "the script for Slurm runs the command as it was given, with all trials or a shard") {
    auto plan = example();
    fs::create_directory(folder / "it's here");
    plan.folder = (folder / "it's here").string();
    auto const script = slurm_script(plan);
    test::check_holds(script, {"#SBATCH --job-name=my-sweep\n", "#SBATCH --array=0-4\n", "#SBATCH --cpus-per-task=2\n",
                               "#SBATCH --mem=1536M\n", "#SBATCH --time=06:20:00\n", "#SBATCH --signal=USR1@120\n", "#SBATCH --requeue\n"});
    std::string const words = "</opt/heed><run><a b.yaml><model.attention={score: dot, scale: it's}><--output></data/of me";
    CHECK(by_shell(script, {"srun"}, folder) == words + ">\n");
    plan.shards = true;
    test::Environment const index("SLURM_ARRAY_TASK_ID", "3");
    CHECK(by_shell(slurm_script(plan), {"srun"}, folder) == words + "/shard-3><--shard><3/5>\n");
    plan.output = "/data/of\necho 'me\\'";  // the script's comment has it too
    CHECK(by_shell(slurm_script(plan), {"srun"}, folder).ends_with("<--output></data/of\necho 'me\\'/shard-3><--shard><3/5>\n"));
  }

  TEST_CASE_FIXTURE(test::SmallAblation, "heed plan writes it for the trials that are left") {
    auto arguments = command({"--slurm"});
    arguments.front() = "plan";
    CHECK(test::run_well(arguments).output.find("#SBATCH --array=0-5\n") != std::string::npos);
    CHECK_FALSE(fs::exists(runs));
    arguments.insert(arguments.end(), {"--tasks", "2"});
    by_shell("srun() { \"$@\"; }\n" + test::run_heed(arguments).output, {}, test::Folder());
    CHECK(finished().size() == 6);
    CHECK(test::run_heed(arguments).output.find("# 0 trials") != std::string::npos);
    arguments.insert(arguments.end(), {"--shards", "2"});
    test::refuses(arguments, 2, {"--shards: does not go with --tasks"});
  }

  TEST_CASE_FIXTURE(test::SmallAblation, "shards have each trial once, by the plan alone, and with tune: an arm with all of its trials") {
    auto const load = [&](Arguments const& changes) {
      return load_ablation(folder / "small.yaml", changes, {.output = runs, .data = {}, .config_folder = {}});
    };
    for (bool const tuned : {false, true}) {
      Arguments changes{"seeds=3"};
      if (tuned) changes.emplace_back("tune={grid: {train.batch: [2, 4]}, seeds: 2}");
      std::size_t const max_shards = tuned ? 3 : 9, all = tuned ? 21 : 9;
      for (std::size_t count = 1; count <= max_shards; ++count) {
        std::vector<int> shards(9);
        std::size_t trials = 0;
        for (std::size_t index = 0; index < count; ++index) {
          auto const ablation = load(test::joined(changes, {fmt::format("shard={}/{}", index, count)}));
          trials += ablation.trials_in_shard();
          for (std::size_t seed = 0; seed < 3; ++seed)
            for (std::size_t arm = 0; arm < 3; ++arm) shards[3 * seed + arm] += ablation.in_shard(arm, seed) ? 1 : 0;
        }
        CHECK(trials == all);
        CHECK(shards == std::vector<int>(9, 1));
      }
      for (auto const& wrong : Arguments{"1/1", "-1/2", "1", "a/2", "1/b", fmt::format("0/{}", max_shards + 1)})
        CHECK_THROWS_WITH_AS(load(test::joined(changes, {"shard=" + wrong})), doctest::Contains("shard: "), ConfigError);
    }
  }

  TEST_CASE("shards that are joined are the ablation of one process") {
    for (Arguments const& changes :
         {Arguments{"--quiet"}, Arguments{"--quiet", "tune={grid: {train.optimizer.lr: [1.0e-2, 1.0e-7]}, seeds: 1}"}}) {
      test::SmallAblation const alone, bench;
      CHECK(alone.run(changes).code == 0);
      auto const shard = [&](std::string const& which, std::string const& folder, Arguments const& more = {}) {
        auto arguments = bench.command(changes);
        arguments[3] = (bench.folder / folder).string();
        test::run_well(test::joined(test::joined(arguments, {"--shard", which}), more));
      };
      auto const report = [&](std::vector<std::string> const& folders) {
        Arguments arguments{"report", "--output", bench.runs.string()};
        for (auto const& each : folders) arguments.push_back((bench.folder / each / "small").string());
        return arguments;
      };
      shard("0/3", "a");
      shard("1/3", "b");
      CHECK(test::get(bench.folder / "a/small/summary.md").find("trials of shard 0 of 3 (from 0)") != std::string::npos);
      test::run_well(report({"a"}));
      CHECK_FALSE(fs::exists(bench.small));
      CHECK(test::run_well(report({"a", "b"})).errors.find("these trials no folder brought: ") != std::string::npos);
      shard("2/3", "c");
      CHECK(test::run_well(report({"a", "b", "c"})).errors.find("no folder brought") == std::string::npos);
      CHECK(bench.rows() == alone.rows());
      CHECK(test::get(bench.small / "summary.md").find("shard") == std::string::npos);
      for (auto const& [name, time] : alone.finished())
        CHECK(test::get(bench.small / name / "checkpoint.safetensors") == test::get(alone.small / name / "checkpoint.safetensors"));
      auto const before = bench.finished();
      CHECK(bench.run(changes).code == 0);  // nothing is left to train
      CHECK(bench.finished() == before);

      shard("2/3", "d", {"seeds=3"});
      test::check_ends(test::run_heed(report({"a", "d"})), 2, {"holds another plan than ", "what differs: seeds\n"});
    }
  }

  TEST_CASE_FIXTURE(test::SmallAblation, "heed watch: what others train, what has ended, what timed out") {
    CHECK(test::run_heed({"watch", small.string(), "--once"}).code == 2);
    CHECK(run({"--quiet"}).code == 0);
    auto const watch = [&] { return test::run_well({"watch", "small", "--output", runs.string(), "--once"}); };
    CHECK(watch().output.starts_with("small: 6/6 runs\n"));

    auto const name = finished().begin()->first;
    fs::path const trial = small / name;
    fs::remove(trial / "summary.json");
    test::Program waiting({"watch", "small", "--output", runs.string(), "--every", "1"});
    REQUIRE(waiting.wait_until([] { return false; }) == false);  // it has ended, not been waited for
    CHECK(waiting.wait().output.find("nobody is training now") != std::string::npos);
    auto lock = FolderLock::attempt(trial);
    test::put(trial / ".lock", "node<7> 4711\n");
    for (int i = 0; i < 3; ++i) record_interruption(trial, StopReason::out_of_time);
    record_interruption(trial, StopReason::preempted);
    auto const names = [&] {
      std::set<std::string> all;
      for (auto const& entry : fs::recursive_directory_iterator(small)) all.insert(entry.path().string());
      return all;
    };
    auto const before = names();
    auto const outcome = watch();
    CHECK(names() == before);
    CHECK(outcome.output.starts_with("small: 5/6 runs, 1 in other processes, "));
    test::check_holds(outcome.output, {"100 % on node<7>", name + " timed out 3 times: ", "(preempted 1 times besides)"});
    fs::path const rows = trial / "metrics.jsonl";
    fs::last_write_time(rows, fs::file_time_type::clock::now() + std::chrono::hours(1));
    CHECK(watch().output.find("unknown: the clocks differ") != std::string::npos);
    fs::rename(rows, small / "rows");
    CHECK(watch().output.find("none yet") != std::string::npos);
    fs::rename(small / "rows", rows);
    lock.reset();
    CHECK(test::run_well(command()).output.find(name + " timed out 3 times: ") != std::string::npos);
  }

  TEST_CASE("a trial that a signal stops is counted by its kind, and goes on") {
    for (int const signal : {SIGTERM, SIGUSR1, SIGINT}) {
      CAPTURE(signal);
      test::SmallAblation const bench;
      test::Program program(bench.command({"--quiet", "--jobs", "1", "train.steps=20000", "train.log.every=100"}));
      auto const began = [&] {
        std::error_code missing;
        for (auto const& entry : fs::directory_iterator(bench.small, missing))
          if (fs::exists(entry.path() / "checkpoint.safetensors")) return true;
        return false;
      };
      REQUIRE(program.wait_until(began));
      program.send(signal);
      CHECK(program.wait().code == 130);
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
