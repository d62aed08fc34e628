// Synthetic tasks of labelled examples, and the text that goes with them.

#include "experiments/data/examples/tasks/example_task.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/grammar.hpp"
#include "experiments/data/tokenizer.hpp"
#include "tests/folder.hpp"
#include "tests/nn/choice.hpp"

TEST_SUITE("example_tasks") {
  using namespace heed;

  namespace {

  using test::Keys, test::chosen, test::split_words;
  using Words = std::vector<std::string>;

  DataContext context(std::uint64_t seed = 1, std::string const& kind = "") {
    return {.config_folder = {}, .data_folder = {}, .seed = seed, .quiet = true, .kind = kind};
  }

  std::shared_ptr<ExampleSource> source_of(std::string const& task, Keys const& keys = {}) {
    return std::dynamic_pointer_cast<ExampleSource>(chosen(choice_of<DataKind>(), task, keys).settings);
  }

  Examples examples_of(std::string const& task, Keys const& keys = {}, std::uint64_t seed = 1) {
    auto const source = source_of(task, keys);
    REQUIRE(!source->contradiction());
    return source->read(context(seed, task));
  }

  Words wholes(std::vector<Example> const& examples) {
    Words all;
    for (auto const& each : examples) {
      auto& text = all.emplace_back(each.first + "|" + each.second + "|" + each.label);
      for (auto const& option : each.options) text += "|" + option;
      for (auto const& answer : each.answers) text += "|" + answer.text;
    }
    return all;
  }

  /// By the grammar of English.
  double log_probability(std::string const& text) {
    static auto const grammar = Grammar::read(read_text(shipped("english.yaml")), "english.yaml");
    std::vector<std::int32_t> numbers;
    for (auto const& word : split_words(text)) {
      auto const found = std::ranges::lower_bound(grammar.words(), word);
      REQUIRE(found != grammar.words().end());
      numbers.push_back(static_cast<std::int32_t>(found - grammar.words().begin()));
    }
    return grammar.log_probability(numbers);
  }

  }  // namespace

  TEST_CASE("every answer is right equally often; the same seed draws the same examples, another others, and none that are held out") {
    for (std::string const name : {"topic", "agreement", "order", "matching_span", "continuation"}) {
      CAPTURE(name);
      auto const keys = Keys{{"training", Index{240}}, {"validation", Index{120}}};
      auto const one = examples_of(name, keys), again = examples_of(name, keys), other = examples_of(name, keys, 2);
      CHECK(one.training.size() == 240);
      CHECK(wholes(one.training) == wholes(again.training));
      CHECK(wholes(one.training) != wholes(other.training));
      CHECK(wholes(one.held_out) == wholes(other.held_out));
      auto const fewer = wholes(examples_of(name, {{"training", Index{50}}, {"validation", Index{120}}}).training);
      auto const all = wholes(one.training);
      CHECK(std::equal(fewer.begin(), fewer.end(), all.begin()));
      std::set<std::string> held_out;
      for (auto const& each : one.held_out) held_out.insert(each.first + each.second);
      for (auto const& each : one.training) CHECK(!held_out.contains(each.first + each.second));
      std::map<std::string, int> labels;
      for (auto const& each : one.held_out) ++labels[each.label];
      for (auto const& [label, count] : labels) CHECK(count == 120 / static_cast<int>(labels.size()));
      CHECK((one.classes.empty() || one.classes.size() == labels.size()));
    }
  }

  TEST_CASE("topic: more words are of the topic than of any other") {
    auto const held_out = examples_of("topic", {{"share", 0.4}}).held_out;
    std::map<std::string, std::map<std::string, int>> counts;  // by word and topic
    for (auto const& each : held_out)
      for (auto const& word : split_words(each.first)) ++counts[word][each.label];
    for (auto const& [word, by_topic] : counts) {
      int most = 0, all = 0;
      for (auto const& [topic, count] : by_topic) most = std::max(most, count), all += count;
      CHECK(most > all / 4);
    }
  }

  TEST_CASE("agreement: what is acceptable is of the language, what is not is not, and they differ in one word alone") {
    for (auto const& each : examples_of("agreement", {{"training", Index{1}}, {"validation", Index{100}}}).held_out) {
      CAPTURE(each.first);
      CHECK(std::isinf(log_probability(each.first)) == (each.label == "unacceptable"));
    }
  }

  TEST_CASE("continuation: one option alone goes on a sentence of the language") {
    for (auto const& each : examples_of("continuation", {{"training", Index{1}}, {"validation", Index{60}}}).held_out) {
      CHECK(each.options.size() == 4);
      for (std::size_t i = 0; i < each.options.size(); ++i)
        CHECK(std::isinf(log_probability(each.first + " " + each.options[i])) == (std::to_string(i) != each.label));
    }
  }

  TEST_CASE("order: the label is what the text says, and the words alone say nothing") {
    std::map<std::string, std::map<std::string, int>> asked;
    for (auto const& each : examples_of("order", {{"validation", Index{2'000}}}).held_out) {
      auto const text = split_words(each.first), question = split_words(each.second);
      bool const before = std::ranges::find(text, question[0]) < std::ranges::find(text, question[2]);
      CHECK(before == (each.label == "yes"));
      for (auto const& word : {question[0] + " first", question[2] + " second"}) ++asked[word][each.label];
    }
    for (auto const& [word, by_label] : asked) {
      double const all = by_label.at("yes") + by_label.at("no");
      CHECK(std::abs(by_label.at("yes") - all / 2) < 4.5 * std::sqrt(all / 4));
    }
  }

  TEST_CASE("matching_span: the answer is the stretch that is asked for, and stands once in its passage") {
    for (auto const& each : examples_of("matching_span").held_out) {
      auto const& [text, start] = each.answers.at(0);
      auto const place = static_cast<std::size_t>(start);
      CHECK(each.second.substr(place, text.size()) == text);
      CHECK(each.second.find(text, place + 1) == std::string::npos);
      CHECK(split_words(each.second).back() == split_words(text).front() + "s");
    }
  }

  TEST_CASE("matching_span: no reader from left to right is right more often than by chance, whatever its scores are") {
    // All examples that share what stands up to the end of the last stretch: a model's scores there are the same for all of them. Each
    // place is the answer of at most one of the four, so that the best choice of all is right once in four; answers have no word behind it.
    auto const source = source_of("matching_span");
    auto const& task = dynamic_cast<ExampleTask const&>(*source);
    for (std::uint64_t draw = 0; draw < 200; ++draw) {
      std::vector<Example> shared;
      for (Index answer = 0; answer < task.answers(); ++answer) shared.push_back(task.write(answer, Stream(3, "test").child(draw)));
      std::string const& any = shared[0].second;
      auto const end = any.rfind(" ; find ");
      for (auto const& each : shared) {
        CHECK(each.first == shared[0].first);
        CHECK(each.second.substr(0, end) == any.substr(0, end));
      }
      for (std::size_t place = 0; place < end; ++place)
        for (auto const side : {0, 1})
          CHECK(std::ranges::count_if(shared, [&](Example const& each) {
                  auto const& [text, start] = each.answers[0];
                  return place == static_cast<std::size_t>(start) + (side == 0 ? 0 : text.size() - 1);
                }) <= 1);
      auto const behind = split_words(any.substr(end));
      for (auto const& each : shared)
        for (auto const& word : split_words(each.answers[0].text)) CHECK(std::ranges::find(behind, word) == behind.end());
    }
  }

  TEST_CASE("stories tell every task's true texts, and no label") {
    auto const text = [](Keys const& keys, std::uint64_t seed) {
      auto const data = open_dataset(chosen(choice_of<DataKind>(), "stories", keys), context(seed));
      auto const batch = data->validation(0, 1, 1'500);
      auto const tokens = batch["inputs"].data<std::int64_t>();
      return data->facts().tokenizer->decode({tokens.begin(), tokens.end()});
    };
    Keys const few{{"lines", Index{500}}, {"held_out_lines", Index{50}}};
    auto const said = text(few, 1);
    CHECK(said == text(few, 2));
    CHECK(said.find(" before ") != said.npos);
    CHECK(said.find(" ; find ") != said.npos);
    for (char const* const label : {"acceptable", "people", "yes"}) CHECK(said.find(label) == said.npos);
    for (auto const& line : test::lines_of(text({{"held_out_lines", Index{20}}, {"tasks", Words{"order"}}}, 1))) {
      if (line.empty()) break;  // padding behind
      auto const words = split_words(line);
      REQUIRE(words.size() == 7);
      CHECK(std::ranges::find(words, words[4]) < std::ranges::find(words, words[6]));
    }
  }

  TEST_CASE("sentences that are never short enough are refused, with the shortest") {
    for (std::string const kind : {"agreement", "continuation"}) {
      CHECK_THROWS_WITH(examples_of(kind, {{"longest", Index{2}}}),
                        doctest::Contains("data.longest: of 10000 sentences none has at most 2 words; the shortest has 4"));
      test::Folder const folder;
      std::string words;
      for (int i = 0; i < 20; ++i) words += "very ";
      test::put(folder / "long.yaml",
                "start: S\nfeatures: {n: [one, many]}\nrules:\n  S: {'A[n] B[n]': 1}\n  A[one]: " + words + "dog\n  A[many]: " + words +
                    "dogs\n  B[one]: [howls, barks]\n  B[many]: [howl, bark]\nagreement: {feature: n, from: A, to: [B]}\n");
      CHECK_THROWS_WITH(examples_of(kind, {{"path", (folder / "long.yaml").string()}}),
                        doctest::Contains("at most 15 words; the shortest has 22"));
    }
  }

  TEST_CASE("a task that holds out nearly all there is, is refused") {
    Keys const keys{{"things", Index{2}}, {"validation", Index{100'000}}};
    CHECK_THROWS_WITH(examples_of("order", keys), doctest::Contains("data.validation: 100000 examples are nearly all that order has"));
  }
}
