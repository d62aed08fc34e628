#include "tests/experiments/runs.hpp"
#include "tests/experiments/task.hpp"

TEST_SUITE("recall") {
  using namespace heed;

  namespace {

  test::Keys sized(Index pairs, Index keys, Index values, std::optional<Index> queries = {}) {
    test::Keys result{{"pairs", pairs}, {"keys", keys}, {"values", values}};
    if (queries) result.emplace_back("queries", *queries);
    return result;
  }

  /// The summary of a run of two layers on two pairs of four keys; `model` and `train` are further keys of these.
  test::Json trained(std::string const& model, std::string const& train) {
    test::Folder const folder;
    test::put(folder / "recall.yaml",
              fmt::format("name: recall\ndata: {{kind: recall, pairs: 2, keys: 4, values: 4, validation: 400}}\ninit: {{std: 0.2}}\n"
                          "model: {{kind: gpt, layers: 2, width: 32, context: 6, {}}}\n"
                          "train: {{batch: 64, optimizer: {{kind: adamw, lr: 3.0e-3, betas: [0.9, 0.99]}}, log: {{every: 100}}, {}}}\n",
                          model, train));
    REQUIRE(run(test::quiet_run(folder, "recall.yaml")) == Exit::done);
    return test::summary_of(folder / "runs/recall");
  }

  }  // namespace

  TEST_CASE("pairs of different keys, then queries whose targets are the values, and nothing else counts") {
    for (Index const queries : {1, 5, 9, 23})
      for (Index const spare : {0, 11}) {
        INFO("queries ", queries, ", spare ", spare);
        auto const data = test::task("recall", sized(5, 7, 6, queries), 3);
        auto const context = 10 + queries + spare;
        for (auto const& [inputs, targets] : test::rows_of(data->training(4, 20, context))) {
          std::map<Index, Index> value;
          for (std::size_t i = 0; i < 10; i += 2) {
            CHECK((inputs[i] >= 1 && inputs[i] <= 7));
            CHECK((inputs[i + 1] >= 8 && inputs[i + 1] <= 13));
            value[inputs[i]] = inputs[i + 1];
            CHECK((targets[i] == -1 && targets[i + 1] == -1));
          }
          CHECK(value.size() == 5);
          std::map<Index, Index> asked;
          for (std::size_t i = 10; i < inputs.size(); ++i) {
            if (inputs[i] == 0) {
              CHECK(targets[i] == -1);
              continue;
            }
            REQUIRE(value.contains(inputs[i]));
            CHECK(targets[i] == value[inputs[i]]);
            ++asked[inputs[i]];
          }
          Index total = 0;
          for (auto const& [key, times] : asked) {
            total += times;
            CHECK((times == queries / 5 || times == queries / 5 + 1));  // none twice before all have been
          }
          CHECK(total == queries);
        }
      }
  }

  TEST_CASE("keys, values and the places of queries are even") {
    auto const data = test::task("recall", sized(3, 6, 4, 2), 1);
    std::map<Index, int> keys, values, positions;
    constexpr int rows = 6000;
    for (auto const& [inputs, targets] : test::rows_of(data->training(0, rows, 12))) {
      for (std::size_t i = 0; i < 6; i += 2) ++keys[inputs[i]], ++values[inputs[i + 1]];
      for (std::size_t i = 6; i < 12; ++i) positions[static_cast<Index>(i)] += targets[i] >= 0 ? 1 : 0;
    }
    auto const even = [](std::map<Index, int> const& counts, std::size_t kinds, double total) {
      REQUIRE(counts.size() == kinds);
      double const share = 1.0 / static_cast<double>(kinds);
      for (auto const& [what, count] : counts) CHECK(std::abs(count - total * share) < 5 * std::sqrt(total * share * (1 - share)));
    };
    even(keys, 6, 3 * rows);
    even(values, 4, 3 * rows);
    even(positions, 6, 2 * rows);
  }

  TEST_CASE("the rows of a seed, as they have always been") {
    auto const data = test::task("recall", sized(3, 5, 4, 2), 7);
    CHECK(test::rows_of(data->training(2, 1, 9)).front() == test::TaskRow{{3, 6, 5, 6, 1, 8, 5, 1, 0}, {-1, -1, -1, -1, -1, -1, 6, 8, -1}});
    CHECK(test::rows_of(data->validation(0, 1, 9)).front() ==
          test::TaskRow{{5, 7, 2, 6, 3, 8, 0, 3, 5}, {-1, -1, -1, -1, -1, -1, -1, 8, 7}});
  }

  TEST_CASE("values that do not repeat") {
    auto keys = sized(6, 9, 6);
    keys.emplace_back("repeat", false);
    for (auto const& [inputs, targets] : test::rows_of(test::task("recall", keys)->training(0, 50, 18))) {
      std::set<Index> values;
      for (std::size_t i = 1; i < 12; i += 2) values.insert(inputs[i]);
      CHECK(values == std::set<Index>{10, 11, 12, 13, 14, 15});
    }
  }

  TEST_CASE("what cannot be is refused") {
    auto const contradiction = [](test::Keys const& keys) { return test::chosen(task_choice(), "recall", keys).settings->contradiction(); };
    CHECK(contradiction(sized(9, 8, 8))->starts_with("pairs: "));
    CHECK(!contradiction(sized(8, 8, 8)));
    auto once = sized(8, 8, 7);
    CHECK(!contradiction(once));
    once.emplace_back("repeat", false);
    CHECK(contradiction(once)->starts_with("repeat: "));
    auto const data = test::task("recall", sized(4, 8, 8, 3), 1);
    CHECK_THROWS_WITH_AS(data->training(0, 1, 10), "model.context: 10 is too short for a sequence of recall; make it 11 or more", Error);
  }

  TEST_CASE("a small model learns it: two pairs, almost always right") {
    auto const summary = trained("heads: 2", "steps: 300, evaluate: {every: 300}");
    CHECK(summary["validation.accuracy"].get<double>() > 0.97);
    CHECK(summary["yardsticks"]["chance"].get<double>() == doctest::Approx(std::log(4)));
  }

  TEST_CASE("hard attention learns it by REINFORCE") {
    // Echoing one of the two values is right 62 times in 100; with a bonus of 0.1 for entropy it stays there.
    auto const summary = trained("heads: 1, position: t5, attention: {read: hard, baseline: leave_one_out, samples: 2, entropy: 0.3}",
                                 "steps: 800, evaluate: {every: 800}");
    CHECK(summary["validation.accuracy"].get<double>() > 0.97);
  }
}
