#include "experiments/train/ranks.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/trace.hpp"

// The same run by several processes of mpirun, where that is installed and the program was built with MPI.

using namespace heed;
using test::check_equal, test::trace_of;
namespace fs = std::filesystem;

namespace {

constexpr char const* ranks_config = R"(
name: tiny
seed: 3
data: {kind: grammar, validation: 16, ngram_sentences: 50}
model: {kind: gpt, layers: 2, heads: 2, width: 32, context: 32, dropout: 0.1}
train:
  {steps: 40, batch: 2, accumulate: 4, optimizer: {kind: adamw, lr: 1.0e-3, weight_decay: 0.1}, clip: 1.0, ema: 0.9, evaluate: {every: 20},
   checkpoint: {every: 10}}
)";

constexpr char const* mpirun = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 exec mpirun --oversubscribe";

/// The exit code of a line of shell, whose errors go to the file `errors`.
int shell(fs::path const& folder, std::string const& line) {
  test::put(folder / "line.sh", line);
  int const status = std::system(fmt::format("cd '{}' && timeout 60 bash line.sh > output 2> errors", folder.string()).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool there_is_mpi() {
  static bool const found = !mpi_version().starts_with("none") && std::system("command -v mpirun > /dev/null") == 0;
  if (!found) MESSAGE("left out: no mpirun, or built without MPI");
  return found;
}

struct Cluster {
  test::Folder folder;
  std::string heed = (fs::read_symlink("/proc/self/exe").parent_path() / "heed").string();

  Cluster() { test::put(folder / "tiny.yaml", ranks_config); }
  std::string run(std::string const& output, std::string const& more) const {
    return fmt::format("{} run tiny.yaml --quiet --threads 1 --output {} {}", heed, output, more);
  }
  std::string run(int processes, std::string const& output, std::string const& more = "") const {
    return processes > 0 ? fmt::format("{} -n {} {}", mpirun, processes, run(output, more)) : run(output, more);
  }
  int start(int processes, std::string const& output, std::string const& more = "") {
    return shell(folder.path(), run(processes, output, more));
  }
  /// Rank 0 and rank 1, each with a command of its own.
  int apart(std::string const& first, std::string const& second) {
    return shell(folder.path(), fmt::format("{} -n 1 {} : -n 1 {}", mpirun, first, second));
  }
  std::string errors() const { return test::get(folder / "errors"); }
  /// All that it has said is one error of heed's, with these parts.
  void check_one_error(std::vector<std::string> const& parts) const {
    CHECK(test::occurrences(errors(), "heed: ") == 1);
    test::check_holds(errors(), parts);
  }
  /// So many processes end a run, and it is the one that a single process makes alone.
  void check_finishes(int processes, std::string const& more) {
    REQUIRE_MESSAGE(start(processes, "runs", more) == 0, errors());
    REQUIRE_MESSAGE(start(0, "alone", more) == 0, errors());
    check_equal(trace("runs"), trace("alone"));
  }
  test::Trace trace(std::string const& output) const { return trace_of(folder / output / "tiny"); }
};

}  // namespace

TEST_SUITE("mpi") {
  TEST_CASE_FIXTURE(Cluster, "any number of processes leaves the same run") {
    if (!there_is_mpi()) return;
    for (auto const& [accumulate, sizes] : {std::pair{4, std::vector{1, 2, 4}}, std::pair{6, std::vector{2, 3, 6}}}) {
      std::string const more = fmt::format("train.accumulate={}", accumulate), alone = fmt::format("alone-{}", accumulate);
      REQUIRE(start(0, alone, more) == 0);
      for (int const size : sizes) {
        INFO("accumulate ", accumulate, ", size ", size);
        std::string const output = fmt::format("runs-{}-{}", accumulate, size);
        REQUIRE(start(size, output, more) == 0);
        check_equal(trace(output), trace(alone));
      }
    }
  }

  TEST_CASE_FIXTURE(Cluster, "hard attention and probes, whose steps each process makes whole") {
    if (!there_is_mpi()) return;
    check_finishes(2, "'model.attention={read: hard}' probes.every=10 'probes.gradients=[norm_by_layer]'");
  }

  TEST_CASE_FIXTURE(Cluster, "QK-clip, by the largest scores of all processes") {
    if (!there_is_mpi()) return;
    check_finishes(4, "train.qk_clip=0.01");
  }

  TEST_CASE_FIXTURE(Cluster, "a process that is killed ends all; another number of them goes on") {
    if (!there_is_mpi()) return;
    std::string const more = "train.steps=200";
    std::mt19937 random(5);
    for (int const size : {4, 2}) {
      double const seconds = std::uniform_real_distribution(0.4, 0.7)(random);
      int const code = shell(folder.path(), fmt::format("( {} ) & p=$!\nsleep {:.3f}\nread -ra children < /proc/$p/task/$p/children\n"
                                                        "kill -9 ${{children[-1]}}\nwait $p",
                                                        run(size, "runs", more), seconds));
      INFO(code);
      CHECK(test::occurrences(errors(), "heed: ") <= 1);
    }
    check_finishes(2, more);
  }

  TEST_CASE_FIXTURE(Cluster, "a signal stops all at the same step, saved") {
    if (!there_is_mpi()) return;
    std::string const more = "train.steps=300";
    shell(folder.path(),
          fmt::format("( {} ) & p=$!\nwhile kill -0 $p && ! [ -s runs/tiny/metrics.jsonl ]; do sleep 0.02; done\nkill -USR1 $p\nwait $p",
                      run(4, "runs", more)));
    CHECK(fs::exists(folder / "runs/tiny/checkpoint.safetensors"));
    CHECK(!fs::exists(folder / "runs/tiny/summary.json"));
    check_finishes(0, more);
  }

  TEST_CASE_FIXTURE(Cluster, "micro-batches that cannot be shared, and a wrong key, are refused in one line") {
    if (!there_is_mpi()) return;
    for (std::string const more : {"train.accumulate=4", "train.acumulate=3"}) {
      CHECK(start(3, "runs", more) == 2);
      check_one_error({more == "train.accumulate=4" ? "one of 1, 2, 4" : "unknown key"});
    }
  }

  TEST_CASE_FIXTURE(Cluster, "ranks that differ are refused before anything is written; what differs is named, with the ranks") {
    if (!there_is_mpi()) return;
    for (std::string const name : {"one", "two"}) {
      std::string words;
      for (int i = 0; i < 60; ++i) words += name + " is a word, ";
      fs::create_directory(folder / name);
      test::put(folder / name / "words.txt", words);
      REQUIRE(start(0, name, fmt::format("train.steps=1 name=start init.std={}", name == "one" ? 0.01 : 0.03)) == 0);
    }
    REQUIRE(shell(folder.path(), fmt::format("mkdir elsewhere; cp {} other && printf x >> other", heed)) == 0);
    std::string const same = run("runs", ""), arguments = same.substr(heed.size());
    std::string const text = "'data={kind: text, path: words.txt, tokenizer: char, validation: 0.5}' --data ";
    std::string const init = "init.from=start/checkpoint.safetensors --data ";
    std::pair<std::string, std::string> const keys[]{
        {"train.optimizer.lr=2.0e-3", "train.optimizer.lr: 0.001 (rank 0), 0.002 (rank 1)"},
        {"seed=4", "seed: 3 (rank 0), 4 (rank 1)"},
        {"train.steps=41", "train.steps: 40 (rank 0), 41 (rank 1)"},
        {"model.width=64", "model.width: 32 (rank 0), 64 (rank 1)"},
        {"dtype=float64", "dtype: float32 (rank 0), float64 (rank 1)"},
        {"train.accumulate=2", "train.accumulate: 4 (rank 0), 2 (rank 1)"},
        {"train.accumulate=3", "train.accumulate: 4 (rank 0), 3 (rank 1)"},
        {"init.from=one/start", "init.from: "},
        {"train.keep=best --output others", "folder: "},
        {"--output others", "folder: "},
    };
    auto const check_refused = [&](std::string const& first, std::string const& second, std::string const& named) {
      auto const begin = std::chrono::steady_clock::now();
      CHECK(apart(first, second) == 2);
      CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
      check_one_error({"the ranks of a run differ: ", named});
    };
    for (auto const& [key, named] : keys) check_refused(same, same + key, named);
    check_refused(same + text + "one", same + text + "two", "content of text (words.txt): ");
    check_refused(same + init + "one", same + init + "two", "content of init.from (checkpoint.safetensors): ");
    check_refused(same, "./other" + arguments, "program: ");
    CHECK(shell(folder.path(), fmt::format("{0} -n 2 {1} : -n 1 {1} train.clip=2.0 : -n 1 {1}", mpirun, same)) == 2);
    check_one_error({"train.clip: 1.0 (rank 0, 1, 3), 2.0 (rank 2)"});
    check_refused(same, fmt::format("-wdir elsewhere {} run ../tiny.yaml --threads 1 --output runs", heed), "folder: ");
    CHECK(!fs::exists(folder / "runs"));
    CHECK(!fs::exists(folder / "others"));

    REQUIRE(start(0, "runs", "train.steps=20") == 0);
    auto const before = trace("runs");
    check_refused(same, same + "--fresh", "(rank 0), none (rank 1)");
    check_refused(same + "train.steps=20", same, "finished: yes (rank 0), no (rank 1)");
    check_equal(trace("runs"), before);
  }

  TEST_CASE_FIXTURE(Cluster, "a rank that fails alone ends all, and is named") {
    if (!there_is_mpi()) return;
    std::string const same = run("runs", "");
    CHECK(apart(same, same + "'data={kind: text, path: words.txt}'") == 3);
    check_one_error({"rank 1: heed: ", "words.txt"});
  }
}
