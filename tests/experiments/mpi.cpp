#include <cstdlib>
#include <random>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include "experiments/run/ranks.hpp"
#include "tests/experiments/trace.hpp"
#include "tests/folder.hpp"

// The same run by several processes of mpirun, where that is installed and the program was built with MPI.

using namespace heed;
using test::check_equal;
using test::trace_of;
namespace fs = std::filesystem;

namespace {

constexpr char const* config = R"(
name: tiny
seed: 3
data: {kind: grammar, validation: 16, ngram_sentences: 50}
model: {kind: gpt, layers: 2, heads: 2, width: 32, context: 32, dropout: 0.1}
train:
  steps: 40
  batch: 2
  accumulate: 4
  optimizer: {kind: adamw, lr: 1.0e-3, weight_decay: 0.1}
  clip: 1.0
  ema: 0.9
  evaluate: {every: 20}
  checkpoint: {every: 10}
)";

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

  Cluster() { test::put(folder / "tiny.yaml", config); }
  std::string run(int processes, std::string const& output, std::string const& more = "") const {
    std::string const mpirun =
        fmt::format("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 exec mpirun --oversubscribe -n {} ", processes);
    return fmt::format("{}{} run tiny.yaml --quiet --threads 1 --output {} {}", processes > 0 ? mpirun : "", heed, output, more);
  }
  int operator()(int processes, std::string const& output, std::string const& more = "") {
    return shell(folder.path(), run(processes, output, more));
  }
  test::Trace trace(std::string const& output) const { return trace_of(folder / output / "tiny"); }
};

}  // namespace

TEST_SUITE("mpi") {
  TEST_CASE("any number of processes leaves the same run") {
    if (!there_is_mpi()) return;
    Cluster cluster;
    for (auto const& [accumulate, sizes] : {std::pair{4, std::vector{1, 2, 4}}, std::pair{6, std::vector{2, 3, 6}}}) {
      std::string const more = fmt::format("train.accumulate={}", accumulate), alone = fmt::format("alone-{}", accumulate);
      REQUIRE(cluster(0, alone, more) == 0);
      for (int const size : sizes) {
        CAPTURE(accumulate);
        CAPTURE(size);
        std::string const output = fmt::format("runs-{}-{}", accumulate, size);
        REQUIRE(cluster(size, output, more) == 0);
        check_equal(cluster.trace(output), cluster.trace(alone));
      }
    }
  }

  TEST_CASE("hard attention and probes, whose steps each process makes whole") {
    if (!there_is_mpi()) return;
    Cluster cluster;
    std::string const more = "'model.attention={read: hard}' probes.every=10 'probes.gradients=[norm_by_layer]'";
    if (cluster(0, "alone", more) != 0) REQUIRE_MESSAGE(false, test::get(cluster.folder / "errors"));
    REQUIRE(cluster(2, "runs", more) == 0);
    check_equal(cluster.trace("runs"), cluster.trace("alone"));
  }

  TEST_CASE("a process that is killed ends all; another number of them goes on") {
    if (!there_is_mpi()) return;
    Cluster cluster;
    std::string const more = "train.steps=200";
    REQUIRE(cluster(0, "alone", more) == 0);
    std::mt19937 random(5);
    for (int const size : {4, 2}) {
      double const seconds = std::uniform_real_distribution(0.4, 0.7)(random);
      int const code =
          shell(cluster.folder.path(), fmt::format("( {} ) & p=$!\nsleep {:.3f}\nread -ra children < /proc/$p/task/$p/children\n"
                                                   "kill -9 ${{children[-1]}}\nwait $p",
                                                   cluster.run(size, "runs", more), seconds));
      INFO(code);
      auto const errors = test::get(cluster.folder / "errors");
      auto const first = errors.find("heed: ");
      CHECK((first == errors.npos || errors.find("heed: ", first + 1) == errors.npos));
    }
    REQUIRE(cluster(2, "runs", more) == 0);
    check_equal(cluster.trace("runs"), cluster.trace("alone"));
  }

  TEST_CASE("a signal stops all at the same step, saved") {
    if (!there_is_mpi()) return;
    Cluster cluster;
    std::string const more = "train.steps=300";
    REQUIRE(cluster(0, "alone", more) == 0);
    shell(cluster.folder.path(),
          fmt::format("( {} ) & p=$!\nwhile kill -0 $p && ! [ -s runs/tiny/metrics.jsonl ]; do sleep 0.02; done\nkill -USR1 $p\nwait $p",
                      cluster.run(4, "runs", more)));
    CHECK(fs::exists(cluster.folder / "runs/tiny/checkpoint.safetensors"));
    CHECK(!fs::exists(cluster.folder / "runs/tiny/summary.json"));
    REQUIRE(cluster(0, "runs", more) == 0);
    check_equal(cluster.trace("runs"), cluster.trace("alone"));
  }

  TEST_CASE("micro-batches that cannot be shared, and a wrong key, are refused in one line") {
    if (!there_is_mpi()) return;
    Cluster cluster;
    for (std::string const more : {"train.accumulate=4", "train.acumulate=3"}) {
      CHECK(cluster(3, "runs", more) == 2);
      auto const errors = test::get(cluster.folder / "errors");
      INFO(errors);
      auto const first = errors.find("heed: ");
      REQUIRE(first != errors.npos);
      CHECK(errors.find("heed: ", first + 1) == errors.npos);
      CHECK(errors.find(more == "train.accumulate=4" ? "one of 1, 2, 4" : "unknown key") != errors.npos);
    }
  }
}
