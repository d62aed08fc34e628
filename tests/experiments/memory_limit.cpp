#include <sys/resource.h>

#include "tests/engine.hpp"
#include "tests/experiments/said.hpp"
#include "tests/experiments/written.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("memory_limit") {
  using namespace heed;

  namespace {

  LoadedExperiment experiment(std::string const& train = "batch: 4", std::string const& model = "layers: 2, heads: 4, width: 64") {
    return test::written(
        fmt::format("data: {{kind: grammar, validation: 400, ngram_sentences: 10, pack: true}}\n"
                    "model: {{kind: gpt, context: 128, {}}}\ntrain: {{steps: 10, {}}}\n",
                    model, train));
  }

  /// The refusal of a run for which so many bytes are left; "" if there is none.
  std::string refused(LoadedExperiment const& loaded, Index bytes) {
    MemoryLimit const limit(memory_use().live + bytes);
    return test::refusal<ConfigError>([&] { Trainer const trainer(loaded, true); });
  }

  /// The most that a Trainer holds until it could begin.
  Index peak_of(LoadedExperiment const& loaded) {
    return test::peak_of([&] { Trainer const trainer(loaded, true); });
  }

  }  // namespace

  TEST_CASE("a step that does not fit is refused at its batch, and one that fits is not") {
    for (std::string const more : {"", ", accumulate: 4", ", recompute: true", ", ema: 0.9"}) {
      CAPTURE(more);
      auto const loaded = experiment("batch: 4" + more);
      Index const needed = peak_of(loaded);
      CHECK(refused(loaded, needed) == "");
      CHECK(refused(loaded, needed - 1).starts_with("test:3:27: train.batch: a training step needs at least 0.0"));
    }
    Index const plain = peak_of(experiment());
    CHECK(peak_of(experiment("batch: 4, accumulate: 4")) > plain);  // gradients of earlier micro-batches
    CHECK(peak_of(experiment("batch: 4, recompute: true")) < plain);
  }

  TEST_CASE("parameters, a batch or other lengths that no machine holds are refused at once") {
    for (auto const& loaded : {experiment("batch: 4", "layers: 1000, heads: 4, width: 65536"), experiment("batch: 100000000000")})
      test::check_holds(test::refusal<ConfigError>([&] { Trainer const trainer(loaded, true); }), {" GB of memory, and "});
    auto const longer = experiment("batch: 4, evaluate: {lengths: [400000]}", "layers: 2, heads: 4, width: 64, position: fire");
    test::check_holds(refused(longer, Index{1} << 30), {"train.evaluate.lengths: 400000: out of memory: "});  // scores: 2.6 TB
  }

  TEST_CASE("the step that is tried leaves neither memory nor gradients") {
    auto const loaded = experiment("batch: 4, accumulate: 2");
    Index const before = memory_use().live;
    {
      Trainer const trainer(loaded, true);
      for (auto const& [name, parameter] : trainer.parameters().all()) CHECK(!parameter.grad().defined());
      CHECK(memory_use().live - before < 4 * 4 * trainer.parameters().elements());  // weights and two moments, rounded up
    }
    CHECK(memory_use().live == before);
  }

  TEST_CASE_FIXTURE(test::InFolder, "with little address space a run that does not fit ends with 2, and one that fits is trained") {
    auto const run = [&](int batch) {
      test::put(folder / "run.yaml",
                fmt::format("name: small\ndata: {{kind: grammar}}\nmodel: {{kind: gpt, layers: 2, heads: 2, width: 32, context: 64}}\n"
                            "train: {{steps: 2, evaluate: {{batches: 1}}, batch: {}}}\n",
                            batch));
      return std::vector<std::string>{"run", folder / "run.yaml", "--output", folder / "runs", "--threads", "1"};
    };
    auto const little = [] {
      ::setenv("OMP_NUM_THREADS", "1", 1);
      rlimit const limit{rlim_t{1} << 30, rlim_t{1} << 30};
      ::setrlimit(RLIMIT_AS, &limit);
    };
    test::refuses(run(20000), 2, {"run.yaml:4:50: train.batch: a training step needs at least ", "train.recompute: true"}, little);
    test::run_well(run(4), little);
  }
}
