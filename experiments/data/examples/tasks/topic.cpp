// What a bag of words is about:
//
//     howls rose bites dog lathe wolves sings runs        animals
//
// `share` of the words are of the topic, the others of the other topics by turns, in any order. Words of a topic stand in one sentence
// wherever the language is spoken (english.yaml: dogs howl, clocks hum), so that a model that has read it knows which belong together.

#include <cmath>

#include <fmt/format.h>

#include "experiments/data/examples/tasks/example_task.hpp"
#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct TopicTask : ExampleTask {
  Index count = 4, words = 12;
  double share = 0.4;

  std::vector<Field> keys() override {
    return {field(&count, "topics", "number of topics").in(2, 4), field(&words, "words", "words of a text").in(1, 1e3),
            field(&share, "share", "share of the words that belong to the topic; lower is harder").in(0, 1)};
  }
  std::optional<std::string> contradiction() override {
    Index const others = words - on_topic(), most_of_another = (others + count - 2) / (count - 1);
    if (on_topic() > most_of_another) return std::nullopt;
    return fmt::format("share: {} of {} words belong to the topic, and as many to another", on_topic(), words);
  }
  std::vector<std::string> classes() const override { return mapped(topics().first(static_cast<std::size_t>(count)), &Topic::name); }
  Index answers() const override { return count; }
  Index on_topic() const { return static_cast<Index>(std::ceil(share * static_cast<double>(words))); }

  Example write(Index answer, Stream const& draws) const override {
    auto const turn = draw_number(draws.child("turn"), 0, count - 1);
    std::vector<std::string> bag;
    for (Index i = 0; i < words; ++i) {
      auto const topic = i < on_topic() ? answer : (answer + 1 + (i + turn) % (count - 1)) % count;
      auto const& nouns = at(topics(), topic).nouns;
      auto const& verbs = at(topics(), topic).verbs;
      auto const drawn =
          static_cast<std::size_t>(draw_number(draws.child("words"), static_cast<std::size_t>(i), std::ssize(nouns) + std::ssize(verbs)));
      bag.push_back(drawn < nouns.size() ? nouns[drawn] : verbs[drawn - nouns.size()]);
    }
    auto const text = mapped(different_numbers(draws.child("order"), words, words), [&](auto place) { return at(bag, place); });
    return {.first = joined(text), .label = at(classes(), answer)};
  }
};

Declared<DataKind> const topic_data{example_task_kind<TopicTask>("topic", "labelled examples: the topic of a bag of words")};

}  // namespace

}  // namespace heed
