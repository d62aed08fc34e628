#include "experiments/commands/list.hpp"
#include "experiments/data/pairs/pair_task.hpp"
#include "experiments/metric/evaluated_batch.hpp"
#include "experiments/train/train.hpp"
#include "nn/decode.hpp"
#include "tests/json.hpp"
#include "tests/nn/choice.hpp"
#include "tests/refusal.hpp"

TEST_SUITE("pairs") {
  using namespace heed;

  namespace {

  using test::Keys;

  std::unique_ptr<Dataset> pairs(std::string const& task, Keys const& keys = {}, std::uint64_t seed = 1, Keys const& of_all = {}) {
    auto data = test::chosen(choice_of<DataKind>(), "pairs", of_all);
    for (auto const& field : data.settings->fields())
      if (field.name == "task") *std::get<Choice*>(field.target) = test::chosen(choice_of<PairKind>(), task, keys);
    return open_dataset(data, {.config_folder = {}, .data_folder = {}, .seed = seed, .quiet = true});
  }

  using Words = std::vector<std::string>;

  /// A row as words, without marks, and what is known of its alignment.
  struct Row {
    Words source, target;
    std::vector<Link> links;
    bool operator==(Row const&) const = default;
  };

  std::vector<Row> rows_of(Dataset const& data, Batch const& batch, std::vector<std::vector<Link>> const& links = {}) {
    std::vector<Row> rows;
    auto const row_of = [](Tensor const& all, Index number) {
      auto const values = all.rows(number, 1).data<std::int64_t>();
      return std::vector(values.begin(), values.end());
    };
    for (Index number = 0; number < batch["inputs"].size(0); ++number) {
      auto const source = row_of(batch["source"], number), inputs = row_of(batch["inputs"], number);
      auto targets = row_of(batch["targets"], number);
      auto const last = static_cast<std::size_t>(row_of(batch["lengths"], number)[0] - 1);
      auto const source_last = static_cast<std::size_t>(row_of(batch["source_lengths"], number)[0] - 1);
      CHECK(source[source_last] == Tokenizer::eos);
      CHECK(targets[last] == Tokenizer::eos);
      CHECK(inputs[0] == Tokenizer::bos);
      CHECK(std::equal(inputs.begin() + 1, inputs.begin() + static_cast<std::ptrdiff_t>(last) + 1, targets.begin()));
      std::ranges::replace(targets, -1, Index{Tokenizer::pad});
      rows.push_back(
          {test::split_words(data.facts().tokenizer->decode(source)), test::split_words(data.facts().tokenizer->decode(targets)), {}});
      CHECK(rows.back().source.size() == source_last);
      CHECK(rows.back().target.size() == last);
      if (!links.empty()) rows.back().links = at(links, number);
    }
    return rows;
  }

  std::vector<Row> held_out(Dataset const& data, Index context = 64) {
    return rows_of(data, data.validation(0, 50, context), held_out(data, 0, 50, context).links);
  }

  /// Whether all links are sure and from equal words to equal words, one of every target.
  bool from_equal(Row const& row) {
    std::set<Index> linked;
    for (auto const& link : row.links) {
      linked.insert(link.target);
      if (!link.sure || at(row.target, link.target) != at(row.source, link.source)) return false;
    }
    return linked.size() == row.target.size() && row.links.size() == row.target.size();
  }

  }  // namespace

  TEST_CASE("of every task: rows are a function of seed and number, held-out rows of their number alone") {
    for (auto const& option : choice_of<PairKind>().options) {
      CAPTURE(option.name);
      auto const one = pairs(option.name), again = pairs(option.name), other = pairs(option.name, {}, 2);
      auto const of = [](Dataset const& data, Index index, Index batch = 8) { return rows_of(data, data.training(index, batch, 64)); };
      auto const rows = of(*one, 5);
      CHECK(rows == of(*again, 5));
      CHECK(rows != of(*other, 5));
      CHECK(rows != of(*one, 6));
      CHECK(std::vector(rows.begin() + 4, rows.end()) == of(*one, 11, 4));
      CHECK(held_out(*one) == held_out(*other));
      CHECK(held_out(*one) != rows_of(*one, one->training(0, 50, 64)));
      CHECK(one->validation_batches(300, 64) == 4);
      CHECK(one->validation(3, 300, 64)["inputs"].size(0) == 100);
      CHECK(held_out(*one, 3, 300, 64).links.size() == 100);
      auto const last = rows_of(*one, one->validation(3, 300, 64)).back();
      CHECK(test::split_words(*one->original(999).reference) == last.target);
      CHECK(one->original(999).reference->size() >= 2 * last.target.size() - 1);
      CHECK(!one->original(1000).reference);
      CHECK_THROWS_AS(one->validation(4, 300, 64), Error);
      CHECK(one->signature()["targets"].made_by.empty());
      CHECK(one->describe()["task"] == option.name);
      CHECK(one->reference_losses(1, 64).front().first == "chance");
      auto const tokenizer = restore_tokenizer(one->tokenizer());
      CHECK(tokenizer->vocabulary() == one->vocabulary());
      CHECK_THROWS_WITH_AS(one->training(0, 8, 5), doctest::Contains(("model.context: 5 is too short for " + option.name).c_str()), Error);
      for (auto const& row : held_out(*one))
        for (auto const& link : row.links) {
          CHECK((link.target >= 0 && link.target < std::ssize(row.target)));
          CHECK((link.source >= 0 && link.source < std::ssize(row.source)));
        }
    }
  }

  TEST_CASE("the longest rows that a task says there are fit the least context that it asks for") {
    for (auto const& option : choice_of<PairKind>().options) {
      CAPTURE(option.name);
      for (Index length = 1; length <= 9; ++length) {
        auto const data = pairs(option.name, {{"length", length}});
        Index min_context = 1;
        while (!test::refusal([&] { data->training(0, 1, min_context); }).empty()) ++min_context;
        auto const batch = data->training(0, 400, min_context);
        CHECK(batch["inputs"].size(1) <= min_context);
        CHECK(batch["source"].size(1) <= min_context);
      }
    }
  }

  TEST_CASE("held-out lengths may be even over a range, and training pairs come again, each once a round") {
    std::map<std::size_t, int> lengths;
    for (auto const& row : held_out(*pairs("reverse", {{"test_length", Index{5}}, {"test_shortest", Index{2}}})))
      ++lengths[row.source.size()];
    CHECK((lengths.size() == 4 && lengths.begin()->first == 2));

    constexpr Index count = 30, batch = 7;
    auto const data = pairs("reverse", {}, 1, {{"training", count}});
    std::vector<std::vector<double>> seen;
    for (Index index = 0; std::ssize(seen) < 2 * count; ++index) {
      Batch const rows = data->training(index, batch, 32);
      for (Index row = 0; row < batch; ++row) seen.push_back(rows["source"].rows(row, 1).to_vector());
    }
    auto const round = [&](Index first) { return std::vector(seen.begin() + first, seen.begin() + first + count); };
    auto const one = round(0), two = round(count);
    CHECK(one != two);
    CHECK(std::ranges::is_permutation(one, two));
    CHECK(std::ssize(std::set(one.begin(), one.end())) == count);
  }

  TEST_CASE("copy, reverse and sort") {
    for (auto const& row : held_out(*pairs("copy"))) {
      CHECK(row.source.size() == 10);
      CHECK(row.target == row.source);
      CHECK(from_equal(row));
      CHECK(std::ranges::all_of(row.links, [](Link const& link) { return link.source == link.target; }));
    }
    for (auto const& row : held_out(*pairs("reverse", {{"shortest", Index{3}}, {"test_length", Index{12}}}))) {
      CHECK(row.target == Words(row.source.rbegin(), row.source.rend()));
      CHECK(from_equal(row));
      CHECK(std::ranges::all_of(row.links, [](Link const& link) { return link.source == 11 - link.target; }));
    }
    for (auto const& row : held_out(*pairs("sort", {{"vocabulary", Index{300}}}))) {
      auto wanted = row.source;
      std::ranges::sort(wanted);
      CHECK(row.target == wanted);
      // Of a word that stands once the link is sure, of others there is one to each of its places.
      std::map<Index, std::vector<Link>> by_target;
      for (auto const& link : row.links) by_target[link.target].push_back(link);
      CHECK(by_target.size() == row.target.size());
      for (auto const& [target, links] : by_target) {
        auto const times = std::ranges::count(row.source, at(row.target, target));
        CHECK(std::ssize(links) == times);
        for (auto const& link : links) {
          CHECK(link.sure == (times == 1));
          CHECK(at(row.source, link.source) == at(row.target, target));
        }
      }
    }
  }

  TEST_CASE("copy with a first word: what is certain of a held-out target does not count") {
    auto const data = pairs("copy", {{"vocabulary", Index{10}}, {"first", Index{3}}});
    for (auto const& row : rows_of(*data, data->training(0, 30, 64))) CHECK((row.source.front() == "03" && row.target == row.source));
    auto const batch = data->validation(0, 30, 64);
    auto const inputs = batch["inputs"].to_vector(), targets = batch["targets"].to_vector();
    CHECK(batch["inputs"].size(1) == 11);
    CHECK(counted(batch["targets"]) == 30 * 9);
    for (std::size_t row = 0; row < 30; ++row) {
      CHECK(targets[row * 11] == -1);
      CHECK(targets[row * 11 + 10] == -1);
      CHECK(inputs[row * 11 + 1] == Tokenizer::marks + 2);
      for (std::size_t i = 1; i < 10; ++i) CHECK(targets[row * 11 + i] == inputs[row * 11 + i + 1]);
    }
    CHECK(counted(pairs("copy")->validation(0, 30, 64)["targets"]) == 30 * 11);
    CHECK(data->original(4).reference->starts_with("03 "));
  }

  TEST_CASE("copy.yaml: fewer of its steps are enough to copy every word") {
    auto const loaded = load_experiment("configs/systems/copy.yaml", {"train.steps=700"}, {});
    Trainer trainer(loaded, true);
    heed::Row row;
    while (!trainer.finished()) trainer.train_step(row);
    trainer.evaluate(row);
    CHECK(*row.find("validation.loss") < 0.05);
    auto const words = trainer.data().facts().tokenizer->encode("01 02 03 04 05 06 07 08 09 10");
    std::vector<Index> const target(words.begin() + 1, words.end());  // without <bos>
    auto source = target;
    source.push_back(Tokenizer::eos);
    auto const found = greedy(trainer.model(), {{"source", Tensor::of(source, {1, 11})}}, Tokenizer::bos, Tokenizer::eos, 12);
    CHECK(found[0].tokens == target);
  }

  TEST_CASE("insert and stretch: the order of the source, at a rate that its words tell") {
    std::size_t inserted = 0;
    for (auto const& row : held_out(*pairs("insert", {{"vocabulary", Index{4}}}))) {
      Words wanted;
      for (auto const& word : row.source) {
        wanted.push_back(word);
        if (word == "3" || word == "4") wanted.emplace_back("and");
      }
      CHECK(row.target == wanted);
      CHECK(row.links.size() == row.source.size());
      inserted += row.target.size() - row.source.size();
    }
    CHECK((inserted > 150 && inserted < 350));
    for (auto const& row : held_out(*pairs("stretch", {{"vocabulary", Index{5}}, {"most", Index{3}}}))) {
      Words wanted;
      for (auto const& word : row.source) wanted.resize(wanted.size() + static_cast<std::size_t>((std::stoi(word) - 1) % 3 + 1), word);
      CHECK(row.target == wanted);
      CHECK(from_equal(row));
      CHECK(std::ranges::is_sorted(row.links, {}, &Link::source));
    }
  }

  TEST_CASE("digits: the names of numbers, and which digits a word comes from") {
    std::map<std::string, Row> seen;
    for (Index const length : {1, 2, 3, 5, 7, 9}) {
      auto const data = pairs("digits", {{"length", length}, {"shortest", length}});
      for (int batch = 0; batch < 20; ++batch)
        for (auto const& row : rows_of(*data, data->validation(batch, 50, 64), held_out(*data, batch, 50, 64).links)) {
          std::string digits;
          for (auto const& digit : row.source) digits += digit;
          CHECK(std::ssize(row.source) == length);
          CHECK((digits.size() == 1 || digits[0] != '0'));
          seen[digits] = row;
        }
    }
    for (auto const& known : std::map<std::string, Words>{
             {"0", {"zero"}}, {"7", {"seven"}}, {"10", {"ten"}}, {"12", {"twelve"}}, {"40", {"forty"}}, {"99", {"ninety", "nine"}}}) {
      REQUIRE(seen.contains(known.first));
      CHECK(seen[known.first].target == known.second);
    }
    CHECK(seen["12"].links == std::vector<Link>{{0, 0, false}, {0, 1, false}});
    CHECK(seen["99"].links == std::vector<Link>{{0, 0}, {1, 1}});
    // Larger ones are too many to know which are drawn: their words are added up again.
    std::map<std::string, long> const values{
        {"zero", 0},      {"one", 1},      {"two", 2},      {"three", 3},      {"four", 4},      {"five", 5},      {"six", 6},
        {"seven", 7},     {"eight", 8},    {"nine", 9},     {"ten", 10},       {"eleven", 11},   {"twelve", 12},   {"thirteen", 13},
        {"fourteen", 14}, {"fifteen", 15}, {"sixteen", 16}, {"seventeen", 17}, {"eighteen", 18}, {"nineteen", 19}, {"twenty", 20},
        {"thirty", 30},   {"forty", 40},   {"fifty", 50},   {"sixty", 60},     {"seventy", 70},  {"eighty", 80},   {"ninety", 90}};
    for (auto const& [digits, row] : seen) {
      long total = 0, group = 0;
      for (auto const& word : row.target) {
        if (word == "hundred") {
          group *= 100;
        } else if (word == "thousand" || word == "million") {
          total += group * (word == "million" ? 1'000'000 : 1'000);
          group = 0;
        } else {
          group += values.at(word);
        }
      }
      CHECK(total + group == std::stol(digits));
      for (auto const& link : row.links) {
        auto const& word = at(row.target, link.target);
        auto const digit = at(row.source, link.source);
        if (!link.sure || word == "hundred") continue;
        auto const value = values.at(word);
        CHECK(std::to_string(value >= 20 ? value / 10 : value) == digit);
      }
    }
  }

  TEST_CASE_FIXTURE(test::InFolder, "a configuration names the task by a word, or with its keys") {
    auto const open = [&](std::string const& task) {
      test::put(folder / "a.yaml", "name: a\ndata: {kind: pairs, task: " + task + "}\nmodel: {kind: gpt, layers: 1, heads: 1, width: 8}\n");
      auto const settings = load_experiment(folder / "a.yaml", {}, {}).settings;
      return open_dataset(settings.data, {.config_folder = {}, .data_folder = {}, .seed = 1, .quiet = true});
    };
    CHECK(open("reverse")->describe()["length"] == 10);
    CHECK(open("{kind: stretch, length: 4, most: 2}")->describe()["most"] == 2);
    test::check_refusals<ConfigError>(open, {{"revers", "did you mean 'reverse'?"},
                                             {"{kind: copy, most: 2}", "a.yaml:2:40: unknown key 'data.task.most'"},
                                             {"{kind: copy, shortest: 11}", "it is more than length"},
                                             {"{kind: copy, first: 17}", "first: 17 is not a word from 1 to 16"},
                                             {"{kind: copy, first: 1, length: 1}", "nothing to copy"},
                                             {"{kind: digits, length: 10}", "data.task.length"}});
    for (auto const& option : choice_of<PairKind>().options) {
      CHECK(list("pairs").find("  " + option.name + " ") != std::string::npos);
      CHECK(list("pairs", option.name).starts_with(option.name + ": " + option.help + "\n"));
    }
    CHECK(list("data").find("  pairs ") != std::string::npos);
  }
}
