#include "experiments/commands/list.hpp"
#include "experiments/train/experiment.hpp"
#include "tests/experiments/task.hpp"
#include "tests/json.hpp"

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
      CHECK(one->reference_losses().front().first == "chance");
      CHECK(one->reference_losses().front().second <= std::log(static_cast<double>(one->vocabulary())));
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
}
