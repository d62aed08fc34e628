// The tasks of claims: every target by another computation than the task's, and known losses by enumeration.

#include "tests/experiments/said.hpp"
#include "tests/experiments/task.hpp"
#include "tests/json.hpp"

TEST_SUITE("claim_tasks") {
  using namespace heed;
  using test::Keys, test::rows_of, test::task;
  using Tokens = std::vector<Index>;

  TEST_CASE("first: the first bit") {
    for (auto const& [inputs, targets] : rows_of(task("first", {})->training(0, 40, 9))) {
      for (std::size_t i = 0; i < 8; ++i) CHECK((targets[i] == -1 && (inputs[i] == 1 || inputs[i] == 2)));
      CHECK(inputs[8] == 3);
      CHECK(targets[8] == inputs[0]);
    }
  }

  TEST_CASE("max_retrieval: the class of the only highest priority") {
    for (auto const& [inputs, targets] : rows_of(task("max_retrieval", {{"classes", 3}, {"levels", 5}})->training(0, 60, 7))) {
      std::map<Index, std::vector<Index>> classes;
      for (std::size_t i = 0; i < 6; ++i) classes[(inputs[i] - 4) % 5].push_back((inputs[i] - 4) / 5);
      REQUIRE(classes.rbegin()->second.size() == 1);
      CHECK(targets[6] == 1 + classes.rbegin()->second.front());
      CHECK(inputs[6] == 19);
    }
  }

  TEST_CASE("flip_flop: a read says what was written last; other shares in the test") {
    auto const data = task("flip_flop", {{"ignore", 0.5}, {"test_ignore", 0.9}});
    double ignored[2]{};
    for (bool const test : {false, true})
      for (auto const& [inputs, targets] : rows_of(test ? data->validation(0, 200, 41) : data->training(0, 200, 41))) {
        Index written = 0;
        CHECK(inputs[0] == 1);
        CHECK(inputs[38] == 2);
        for (std::size_t i = 0; i < 40; i += 2) {
          if (inputs[i] == 1) written = inputs[i + 1];
          if (inputs[i] == 2) CHECK(inputs[i + 1] == written);
          CHECK(targets[i] == (inputs[i] == 2 ? written : -1));
          CHECK(targets[i + 1] == -1);
          ignored[test] += inputs[i] == 3 ? 1.0 / (200 * 18) : 0;
        }
        CHECK(inputs[40] == 0);
      }
    CHECK(ignored[0] == doctest::Approx(0.5).epsilon(0.05));
    CHECK(ignored[1] == doctest::Approx(0.9).epsilon(0.05));
  }

  TEST_CASE("markov_chains: the next state; the known losses are those of counts, and no better ones exist on average") {
    auto const data = task("markov_chains", {{"states", 2}, {"length", 3}, {"validation", 1000}});
    // All sequences of three steps with their probabilities under uniform transitions: P(x y z w) by Beta integrals.
    double order_1 = 0;
    for (int code = 0; code < 8; ++code) {
      int const x[]{0, code & 1, (code >> 1) & 1, (code >> 2) & 1};
      double counts[2][2]{}, probability = 1, loss = 0;
      for (int t = 0; t < 3; ++t) {
        double const p = (counts[x[t]][x[t + 1]] + 1) / (counts[x[t]][0] + counts[x[t]][1] + 2);
        probability *= p, loss -= std::log(p);
        ++counts[x[t]][x[t + 1]];
      }
      order_1 += probability * loss / 3;
    }
    auto const losses = data->reference_losses(1000, 64);
    REQUIRE(losses.size() == 3);
    CHECK(losses[2].first == "order 1");
    CHECK(losses[2].second == doctest::Approx(order_1).epsilon(0.02));
    // Of three rows: the mean of theirs, each by the counts so far.
    double of_three = 0;
    for (auto const& [inputs, targets] : rows_of(data->validation(0, 3, 64))) {
      std::map<std::pair<Index, Index>, double> pairs;
      std::map<Index, double> single;
      for (std::size_t t = 0; t < 3; ++t) {
        of_three -= std::log((pairs[{inputs[t], targets[t]}]++ + 1) / (single[inputs[t]]++ + 2)) / 9;
      }
    }
    CHECK(data->reference_losses(3, 64)[2].second == doctest::Approx(of_three).epsilon(1e-12));
    for (auto const& [inputs, targets] : rows_of(data->training(0, 20, 3)))
      for (std::size_t t = 0; t + 1 < 3; ++t) CHECK(targets[t] == inputs[t + 1]);
  }

  TEST_CASE("known losses are on the rows of the evaluation beside them") {
    test::Folder const folder;
    auto const run =
        test::trained(folder, "a",
                      "data: {kind: markov_chains, length: 6, validation: 9}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8, "
                      "context: 8}\ntrain: {steps: 1, batch: 2, evaluate: {batch: 4, batches: 1}}\n");
    auto const data = task("markov_chains", {{"length", 6}, {"validation", 9}});
    CHECK(test::json_of(run / "summary.json")["yardsticks"]["order 1"] == data->reference_losses(4, 8)[2].second);
    test::run_well({"evaluate", run.string()});
    CHECK(test::json_of(run / "evaluation-validation/results.json")["references"]["order 1"] == data->reference_losses(9, 8)[2].second);
  }

  TEST_CASE("modular_addition: the whole table, split once by the seed; an epoch is every row once") {
    auto const data = task("modular_addition", {{"modulus", 5}, {"training", 0.4}, {"validation", 5000}}, 3);
    auto const terms = [](Batch const& batch) {
      std::set<std::pair<Index, Index>> all;
      for (auto const& row : rows_of(batch)) all.emplace(row.inputs[0], row.inputs[1]);
      return all;
    };
    auto const trained = terms(data->training(0, 10, 3)), held_out = terms(data->validation(0, 15, 3));
    CHECK(trained.size() == 10);
    CHECK(held_out.size() == 15);
    CHECK(data->validation_batches(1, 3) == 15);
    CHECK(data->describe()["validation"] == 15);
    for (auto const& row : trained) CHECK(!held_out.contains(row));
    for (Index epoch = 0; epoch < 3; ++epoch) {
      CHECK(terms(data->training(epoch, 10, 3)) == trained);
      for (auto const& [inputs, targets] : rows_of(data->training(epoch, 10, 3))) {
        CHECK(targets[2] - 1 == (inputs[0] - 1 + inputs[1] - 1) % 5);
        CHECK(inputs[2] == 6);
      }
    }
    auto const other = task("modular_addition", {{"modulus", 5}, {"training", 0.4}}, 4);
    CHECK(terms(other->training(0, 10, 3)) != trained);
  }

  TEST_CASE("back_copy: behind a trigger the token before it; the exact loss is that of the frequencies elsewhere") {
    auto const data = task("back_copy", {{"vocabulary", 6}, {"triggers", 2}, {"concentration", 1.0}, {"validation", 1000}});
    std::map<Index, std::map<Index, double>> counts;
    double copied = 0, all = 0;
    for (Index batch = 0; batch < 40; ++batch)
      for (auto const& [inputs, targets] : rows_of(data->validation(0, 500, 64)))
        for (std::size_t t = 0; t < 64; ++t, ++all) {
          bool const copies = (inputs[t] == 2 || inputs[t] == 3) && t > 0 && inputs[t - 1] > 1;
          if (copies) CHECK(targets[t] == inputs[t - 1]);
          if (copies) ++copied;
          if (!copies) counts[inputs[t]][targets[t]] += 1;
          if (t + 1 < 64) CHECK(inputs[t + 1] == targets[t]);
        }
    double loss = 0;
    for (auto const& [token, next] : counts) {
      double sum = 0;
      for (auto const& [target, count] : next) sum += count;
      for (auto const& [target, count] : next) loss -= count * std::log(count / sum);
    }
    auto const losses = data->reference_losses(1000, 64);
    CHECK(losses[1].first == "exact");
    CHECK(losses[1].second == doctest::Approx(loss / all).epsilon(0.02));
    CHECK(data->reference_losses(1000, 8)[1].second != losses[1].second);
    CHECK(copied > 0);
  }

  TEST_CASE("MAD's tasks: what is to be copied or recalled") {
    for (auto const& [inputs, targets] : rows_of(task("selective_copy", {{"length", 3}, {"vocabulary", 5}})->training(0, 60, 10))) {
      Tokens expected(inputs.begin(), inputs.begin() + 7);
      std::erase(expected, 0);
      CHECK(Tokens(targets.begin() + 7, targets.end()) == expected);
      CHECK((inputs[7] == 6 && inputs[8] == 0 && inputs[9] == 0));
    }
    std::map<Index, Index> dictionary;  // the same for every seed, in training and held out
    for (std::uint64_t const seed : {1, 2}) {
      auto const data = task("memorization", {{"length", 5}, {"keys", 6}, {"values", 4}}, seed);
      for (auto const& batch : {data->training(0, 60, 10), data->validation(0, 60, 10)})
        for (auto const& [inputs, targets] : rows_of(batch))
          for (std::size_t i = 0; i < 10; i += 2) {
            CHECK((inputs[i] >= 1 && inputs[i] <= 6 && inputs[i + 1] == 0 && targets[i] == -1));
            CHECK((targets[i + 1] >= 7 && targets[i + 1] <= 10));
            CHECK(dictionary.try_emplace(inputs[i], targets[i + 1]).first->second == targets[i + 1]);
          }
    }
    CHECK(dictionary.size() == 6);
    auto const noisy = task("noisy_recall", {{"pairs", 3}, {"keys", 4}, {"values", 5}, {"noises", 2}, {"noise", 0.5}});
    int with_noise = 0;
    for (auto const& [inputs, targets] : rows_of(noisy->training(0, 60, 12))) {
      std::map<Index, Index> value;
      std::size_t last = 0;
      for (std::size_t i = 0; i < 12 && inputs[i] != 0; ++i) {
        last = i;
        if (inputs[i] >= 10) ++with_noise;
        if (i > 0 && inputs[i] >= 5 && inputs[i] < 10 && inputs[i - 1] < 5) value[inputs[i - 1]] = inputs[i];
      }
      CHECK(value.size() == 3);
      CHECK(targets[last] == value.at(inputs[last]));
      CHECK(std::ranges::count(targets, -1) == 11);
    }
    CHECK(with_noise > 20);
    auto const fuzzy = task("fuzzy_recall", {{"pairs", 3}, {"longest", 2}, {"keys", 4}, {"values", 3}});
    for (auto const& row : rows_of(fuzzy->training(0, 60, 24))) {
      auto const &inputs = row.inputs, &targets = row.targets;
      std::map<Tokens, Tokens> value;
      std::size_t at = 0;
      auto const word = [&](Index end) {
        Tokens tokens;
        for (; inputs[at] != end; ++at) tokens.push_back(inputs[at]);
        ++at;
        return tokens;
      };
      for (int pair = 0; pair < 3; ++pair) {
        auto const key = word(1);
        value[key] = word(2);
      }
      auto const asked = word(1);
      Tokens found;
      for (std::size_t i = at - 1; i < 24 && targets[i] >= 0; ++i) found.push_back(targets[i]);
      CHECK(found == value.at(asked));
    }
  }
}
