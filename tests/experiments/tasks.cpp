#include "experiments/commands/list.hpp"
#include "experiments/train/experiment.hpp"
#include "tests/experiments/task.hpp"
#include "tests/json.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("tasks") {
  using namespace heed;
  using test::Keys, test::rows_of, test::task;

  namespace {

  using Tokens = std::vector<Index>;

  void check_sequences(std::string const& name, std::function<void(Tokens&)> const& transform) {
    for (bool const forced : {true, false}) {
      CAPTURE(forced);
      auto const data = task(name, {{"length", 6}, {"shortest", 2}, {"vocabulary", 5}, {"forced", forced}});
      CHECK(data->vocabulary() == 6);
      std::map<std::size_t, int> sizes;
      Batch const batch = data->training(3, 100, 14);
      auto const lengths = batch["lengths"].data<std::int64_t>();
      std::size_t row = 0;
      for (auto const& [inputs, targets] : rows_of(batch)) {
        Tokens answer(inputs.begin(), std::ranges::find(inputs, 0));
        auto const n = answer.size();
        ++sizes[n];
        CHECK(lengths[row++] == static_cast<Index>(2 * n));
        CHECK(std::ranges::all_of(answer, [](auto token) { return token >= 1 && token <= 5; }));
        transform(answer);
        for (std::size_t i = 0; i < 14; ++i) {
          bool const asked = i >= n && i < 2 * n;
          CHECK(targets[i] == (asked ? answer[i - n] : -1));
          if (i >= n) CHECK(inputs[i] == (forced && i > n && i < 2 * n ? answer[i - n - 1] : 0));
        }
      }
      CHECK(sizes.size() == 5);
    }
  }

  }  // namespace

  TEST_CASE("copy, reverse, sort: a sequence and what follows from it") {
    check_sequences("copy", [](Tokens&) {});
    check_sequences("reverse", [](Tokens& sequence) { std::ranges::reverse(sequence); });
    check_sequences("sort", [](Tokens& sequence) { std::ranges::sort(sequence); });
  }

  TEST_CASE("held-out sequences may be longer than those of training") {
    auto const data = task("copy", {{"length", 3}, {"test_length", 5}});
    CHECK_THROWS_WITH_AS(data->training(0, 1, 9), "model.context: 9 is too short for a sequence of copy; make it 10 or more", Error);
    for (auto const& row : rows_of(data->training(0, 20, 10))) CHECK(std::ranges::count(row.targets, -1) == 7);
    for (auto const& row : rows_of(data->validation(0, 20, 10))) CHECK(std::ranges::count(row.targets, -1) == 5);
  }

  TEST_CASE("copy, reverse, sort, compression: held-out sequences that fill the context, whatever it is") {
    for (std::string const name : {"copy", "reverse", "sort", "compression"}) {
      auto const data = task(name, {{"length", 4}, {"shortest", 2}, {"fill", true}});
      for (Index const context : {8, 16, 33})
        for (auto const& row : rows_of(data->validation(0, 20, context)))
          CHECK(std::ranges::count_if(row.targets, [](auto token) { return token >= 0; }) == context / 2);
      for (auto const& row : rows_of(data->training(0, 20, 33))) CHECK(std::ranges::count(row.targets, -1) >= 29);
    }
  }

  TEST_CASE("compression: the sequence after a question; its 27 sequences of three out of three are equally likely") {
    auto const data = task("compression", {{"length", 3}, {"vocabulary", 3}});
    CHECK(data->vocabulary() == 5);
    CHECK(data->facts().bounds.front().second == std::log(3.0));
    std::map<Tokens, double> counts;
    for (auto const& [inputs, targets] : rows_of(data->training(0, 2700, 7))) {
      CHECK(std::vector(inputs.begin() + 3, inputs.end()) == Tokens{4, 0, 0, 0});
      CHECK(std::vector(targets.begin(), targets.begin() + 3) == Tokens{-1, -1, -1});
      CHECK(std::equal(inputs.begin(), inputs.begin() + 3, targets.begin() + 3));
      CHECK(targets[6] == -1);
      ++counts[Tokens(inputs.begin(), inputs.begin() + 3)];
    }
    CHECK(counts.size() == 27);
    double deviation = 0;  // chi squared of 26 degrees of freedom
    for (auto const& [sequence, count] : counts) deviation += (count - 100) * (count - 100) / 100;
    CHECK(deviation < 54);  // p = 0.001
  }

  TEST_CASE("lag: what stood so many steps before") {
    for (Index const lag : {0, 1, 5})
      for (auto const& [inputs, targets] : rows_of(task("lag", {{"lag", lag}})->training(1, 20, 9)))
        for (std::size_t i = 0; i < 9; ++i)
          CHECK(targets[i] == (i < static_cast<std::size_t>(lag) ? -1 : inputs[i - static_cast<std::size_t>(lag)]));
  }

  TEST_CASE("induction: what followed the last time") {
    for (auto const& [inputs, targets] : rows_of(task("induction", {{"vocabulary", 4}, {"length", 15}})->training(0, 50, 16))) {
      for (std::size_t i = 0; i < 15; ++i) {
        Index answer = -1;
        for (std::size_t j = 0; j < i; ++j)
          if (inputs[j] == inputs[i]) answer = inputs[j + 1];
        CHECK(targets[i] == answer);
      }
      CHECK((inputs[15] == 0 && targets[15] == -1));
    }
  }

  TEST_CASE("lookup: both keys' values, in the order of the question") {
    for (Index const delay : {0, 1, 3}) {
      auto const data = task("lookup", {{"pairs", 4}, {"keys", 6}, {"values", 3}, {"questions", 2}, {"delay", delay}});
      CHECK(data->vocabulary() == 10);
      auto const later = static_cast<std::size_t>(delay);
      for (auto const& [inputs, targets] : rows_of(data->training(0, 50, 13 + 2 * delay))) {
        std::map<Index, Index> value;
        for (std::size_t i = 0; i < 8; i += 2) {
          CHECK((inputs[i] >= 1 && inputs[i] <= 6 && inputs[i + 1] >= 7 && inputs[i + 1] <= 9));
          value[inputs[i]] = inputs[i + 1];
        }
        CHECK(value.size() == 4);
        for (std::size_t const first : {std::size_t{8}, 10 + later}) {
          CHECK(inputs[first] != inputs[first + 1]);
          CHECK(targets[first + later] == value.at(inputs[first]));
          CHECK(targets[first + later + 1] == value.at(inputs[first + 1]));
        }
        CHECK(std::ranges::count_if(inputs, [](auto token) { return token > 0; }) == 12);
        CHECK(std::ranges::count_if(targets, [](auto token) { return token >= 0; }) == 4);
      }
    }
  }

  TEST_CASE("brackets: balanced, never too deep, and the answer closes what is open") {
    auto const data = task("brackets", {{"kinds", 3}, {"length", 12}, {"depth", 4}});
    std::size_t deepest = 0;
    for (auto const& [inputs, targets] : rows_of(data->training(0, 100, 13))) {
      Tokens open;
      for (std::size_t i = 0; i < 12; ++i) {
        bool const opens = inputs[i] <= 3;
        if (opens) {
          open.push_back(inputs[i]);
        } else {
          REQUIRE(!open.empty());
          CHECK(inputs[i] == open.back() + 3);
          open.pop_back();
        }
        deepest = std::max(deepest, open.size());
        CHECK(targets[i] == (opens || open.empty() ? -1 : open.back() + 3));
      }
      CHECK(open.empty());
      CHECK((inputs[12] == 0 && targets[12] == -1));
    }
    CHECK(deepest == 4);
    CHECK(test::chosen(task_choice(), "brackets", {{"length", 5}}).settings->contradiction()->starts_with("length: "));
  }

  TEST_CASE("of every task: rows are a function of seed and number, held-out rows of their number alone") {
    for (auto const& option : task_choice().options) {
      CAPTURE(option.name);
      auto const one = task(option.name, {}, 1), again = task(option.name, {}, 1), other = task(option.name, {}, 2);
      auto const rows = rows_of(one->training(5, 8, 40));
      CHECK(rows == rows_of(again->training(5, 8, 40)));
      CHECK(rows != rows_of(other->training(5, 8, 40)));
      CHECK(rows != rows_of(one->training(6, 8, 40)));
      CHECK(std::vector(rows.begin() + 4, rows.end()) == rows_of(one->training(11, 4, 40)));
      auto const held_out = rows_of(one->validation(5, 8, 40));
      if (option.name != "modular_addition")  // whose table the seed splits
        CHECK(held_out == rows_of(other->validation(5, 8, 40)));
      CHECK(held_out != rows);
      CHECK(one->validation_batches(300, 40) == 4);
      CHECK(rows_of(one->validation(3, 300, 40)).size() == 100);
      CHECK_THROWS_AS(one->validation(4, 300, 40), Error);
      for (auto const& row : rows) {
        CHECK(std::ranges::all_of(row.inputs, [&](auto token) { return token >= 0 && token < one->vocabulary(); }));
        CHECK(std::ranges::all_of(row.targets, [&](auto token) { return token >= -1 && token < one->vocabulary(); }));
      }
      CHECK(one->signature()["targets"].made_by.empty());
      CHECK(one->describe()["tokens"] == one->vocabulary());
      auto const [name, chance] = one->reference_losses(1, 40).front();
      CHECK(name == "chance");
      CHECK(chance <= std::log(static_cast<double>(one->vocabulary())));
    }
  }

  TEST_CASE("every task is listed and has a configuration that loads") {
    auto const page = list("tasks");
    for (auto const& option : task_choice().options) {
      CHECK(page.find("  " + option.name + " ") != std::string::npos);
      CHECK(page.find(option.help + "\n") != std::string::npos);
      CHECK(list("tasks", option.name).starts_with(option.name + ": " + option.help + "\n"));
      auto const file = std::filesystem::path("configs/tasks") / (option.name + ".yaml");
      CAPTURE(file);
      auto const experiment = load_experiment(file, {}, {});
      CHECK(experiment.settings.name == option.name);
      CHECK(experiment.settings.data.kind == option.name);
    }
    CHECK(page.find("  grammar ") == std::string::npos);
  }

  TEST_CASE_FIXTURE(test::InFolder, "a malformed setting is refused with its place") {
    auto const read = [&](std::string const& data) {
      test::put(folder / "a.yaml", "name: a\ndata: {kind: " + data + "}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8, context: 64}\n");
      load_experiment(folder / "a.yaml", {}, {});
    };
    test::check_refusals<ConfigError>(
        read,
        {{"compresion", "a.yaml:2:14: 'data.kind' wants one of"},
         {"compression, forced: true", "a.yaml:2:27: unknown key 'data.forced'"},
         {"compression, length: 0", "a.yaml:2:35: 'data.length' wants an integer ≥ 1"},
         {"compression, vocabulary: 1", "a.yaml:2:39: 'data.vocabulary' wants an integer ≥ 2"},
         {"copy, lenght: 3", "a.yaml:2:20: unknown key 'data.lenght'; did you mean 'length'?"},
         {"copy, validation: 0", "a.yaml:2:32: 'data.validation' wants an integer ≥ 1"},
         {"reverse, forced: 2", "a.yaml:2:31: 'data.forced' wants true or false"},
         {"sort, fill: 3", "a.yaml:2:26: 'data.fill' wants true or false"},
         {"sort, fill: true, test_length: 20", "a.yaml:2:45: data.test_length: with fill: true"},
         {"sort, shortest: 11", "a.yaml:2:30: data.shortest: it is more than length"},
         {"parity, group: S3", "a.yaml:2:22: unknown key 'data.group'; kind 'parity' does not know it"},
         {"group_words, group: S4", "a.yaml:2:34: 'data.group' wants one of A5, S3, S5, Z2, Z60"},
         {"group_words, shortest: 0", "a.yaml:2:37: 'data.shortest' wants an integer ≥ 1"},
         {"lag, lag: -1", "a.yaml:2:24: 'data.lag' wants an integer ≥ 0"},
         {"lag, length: 8", "a.yaml:2:19: unknown key 'data.length'"},
         {"induction, length: 2", "a.yaml:2:33: 'data.length' wants an integer ≥ 3"},
         {"brackets, length: 5", "a.yaml:2:32: data.length: 5 brackets cannot all be closed"},
         {"brackets, kinds: 1", "a.yaml:2:31: 'data.kinds' wants an integer ≥ 2"},
         {"recall, pairs: 17", "a.yaml:2:29: data.pairs: the keys of a sequence differ, but there are only 16 keys for 17 pairs"},
         {"recall, values: 4, repeat: false", "a.yaml:2:41: data.repeat: false needs a value for each pair"},
         {"lookup, pairs: 17", "a.yaml:2:29: data.pairs: the keys of a sequence differ, but there are only 16 keys for 17 pairs"},
         {"lookup, delay: -1", "a.yaml:2:29: 'data.delay' wants an integer ≥ 0"},
         {"first, length: 3", "a.yaml:2:21: unknown key 'data.length'"},
         {"max_retrieval, levels: 1", "a.yaml:2:37: 'data.levels' wants an integer ≥ 2"},
         {"flip_flop, ignore: 1.1", "a.yaml:2:33: 'data.ignore' wants a number ≥ 0 and ≤ 1"},
         {"flip_flop, test_ignore: sparse", "a.yaml:2:38: 'data.test_ignore' wants a number ≥ 0 and ≤ 1"},
         {"markov_chains, states: 1", "a.yaml:2:37: 'data.states' wants an integer ≥ 2"},
         {"modular_addition, modulus: 1", "a.yaml:2:41: 'data.modulus' wants an integer ≥ 2"},
         {"modular_addition, training: 1", "a.yaml:2:42: 'data.training' wants a number ≥ 0.001 and ≤ 0.999"},
         {"back_copy, vocabulary: 4", "a.yaml:2:7: data.triggers: 3 leave no two other tokens of 4"},
         {"back_copy, concentration: 0", "a.yaml:2:40: 'data.concentration' wants a number ≥ 0.01"},
         {"noisy_recall, pairs: 17", "a.yaml:2:35: data.pairs: the keys of a sequence differ, but there are only 16 keys for 17 pairs"},
         {"noisy_recall, noise: 1", "a.yaml:2:35: 'data.noise' wants a number ≥ 0 and ≤ 0.99"},
         {"fuzzy_recall, pairs: 17", "a.yaml:2:35: data.pairs: the first tokens of the keys differ"},
         {"fuzzy_recall, longest: 0", "a.yaml:2:37: 'data.longest' wants an integer ≥ 1"},
         {"selective_copy, length: 0", "a.yaml:2:38: 'data.length' wants an integer ≥ 1"},
         {"memorization, values: 1", "a.yaml:2:36: 'data.values' wants an integer ≥ 2"}});
  }
}
