// Tasks on words of configs/data/english.yaml: the topic of a text, the order of words, and a span that is asked for.

#include <cmath>
#include <span>

#include <fmt/format.h>

#include "experiments/data/examples/tasks/example_task.hpp"
#include "experiments/data/tasks/task.hpp"

namespace heed {
namespace {

/// Words that belong together: nouns and their verbs.
struct Topic {
  std::string name;
  std::vector<std::string> nouns, verbs;
};

/// people, animals, machines, plants.
std::span<Topic const> topics() {
  static std::vector<Topic> const all{
      {"people",
       {"king", "monk", "boy", "queen", "nun", "girl", "kings", "monks", "boys", "queens", "nuns", "girls"},
       {"sings", "prays", "laughs", "praises", "follows", "paints", "sing", "pray", "laugh", "praise", "follow", "paint"}},
      {"animals",
       {"dog", "horse", "wolf", "dogs", "horses", "wolves"},
       {"howls", "eats", "runs", "chases", "bites", "smells", "howl", "eat", "run", "chase", "bite", "smell"}},
      {"machines",
       {"clock", "mill", "lathe", "clocks", "mills", "lathes"},
       {"hums", "rusts", "stops", "moves", "cuts", "lifts", "hum", "rust", "stop", "move", "cut", "lift"}},
      {"plants",
       {"rose", "tree", "vine", "roses", "trees", "vines"},
       {"blooms", "withers", "grows", "shades", "hides", "covers", "bloom", "wither", "grow", "shade", "hide", "cover"}}};
  return all;
}

std::vector<std::string> nouns_of(std::span<Topic const> topics) {
  std::vector<std::string> all;
  for (auto const& topic : topics) all.insert(all.end(), topic.nouns.begin(), topic.nouns.end());
  return all;
}

/// What a bag of words is about:
///
///     howls rose bites dog lathe wolves sings runs        animals
///
/// `share` of the words are of the topic, the others of the other topics by turns, in any order. Words of a topic stand in one sentence
/// wherever the language is spoken (english.yaml: dogs howl, clocks hum), so that a model that has read it knows which belong together.
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
  Index on_topic() const { return static_cast<Index>(std::ceil(share * static_cast<double>(words))); }

  Example write(Index answer, Stream const& draws) const override {
    auto const turn = draw_number(draws.child("turn"), 0, count - 1);
    std::vector<std::string> bag;
    for (Index i = 0; i < words; ++i) {
      auto const topic = i < on_topic() ? answer : (answer + 1 + (i + turn) % (count - 1)) % count;
      auto const& [topic_name, nouns, verbs] = at(topics(), topic);
      auto const drawn =
          static_cast<std::size_t>(draw_number(draws.child("words"), static_cast<std::size_t>(i), std::ssize(nouns) + std::ssize(verbs)));
      bag.push_back(drawn < nouns.size() ? nouns[drawn] : verbs[drawn - nouns.size()]);
    }
    auto const text = mapped(different_numbers(draws.child("order"), words, words), [&](auto place) { return at(bag, place); });
    return {.first = joined(text), .label = at(classes(), answer)};
  }
};

Declared<DataKind> const topic_data{examples_kind<TopicTask>("topic", "labelled examples: the topic of a bag of words")};

/// Whether one thing was named before another:
///
///     king dog rose mill      dog before mill     yes
///     king dog rose mill      rose before king    no
///
/// The words and their order are drawn first, and each pair of them may be asked for in either order: the words alone say nothing.
struct Order : ExampleTask {
  Index things = 4;

  std::vector<Field> keys() override { return {field(&things, "things", "number of things that a text names; more is harder").in(2, 30)}; }
  std::vector<std::string> classes() const override { return {"no", "yes"}; }
  std::string untrue() const override { return "no"; }

  Example write(Index answer, Stream const& draws) const override {
    static auto const nouns = nouns_of(topics());
    auto const drawn = different_numbers(draws.child("nouns"), things, std::ssize(nouns));
    auto const text = mapped(drawn, [&](auto noun) { return at(nouns, noun); });
    auto asked = different_numbers(draws.child("asked"), 2, things);
    if ((asked[0] < asked[1]) != (answer == 1)) std::swap(asked[0], asked[1]);
    return {.first = joined(text), .second = at(text, asked[0]) + " before " + at(text, asked[1]), .label = at(classes(), answer)};
  }
};

Declared<DataKind> const order_data{examples_kind<Order>("order", "labelled examples: whether one thing was named before another")};

/// The stretch that begins with what is asked for last:
///
///     king mill ; nun vine ; boy clocks ; queen dog ; find nuns        nun vine
///
/// The question is the same in every example: the requested span is named after all spans. A left-to-right model cannot exceed chance, 1 /
/// stretches: what it has read up to the end of the last span is the same for every answer, and answers are equally likely, so that its
/// scores of the spans' tokens do not depend on the answer; and no word of an answer occurs later (nuns is not nun). Were it named *before*
/// the spans, with its match behind each start, marking the last start without a match so far would be correct. A bidirectional model sees
/// at a start whether it matches.
struct MatchingSpan : ExampleTask {
  Index stretches = 4, length = 1;

  std::vector<Field> keys() override {
    return {field(&stretches, "stretches", "number of candidate spans; more is harder").in(2, 6),
            field(&length, "length", "number of words of a span after its first").in(1, 3)};
  }
  Index answers() const override { return stretches; }

  Example write(Index answer, Stream const& draws) const override {
    static auto const things = nouns_of(topics().subspan(1));
    auto const names = different_numbers(draws.child("names"), stretches, 6);
    auto const words = different_numbers(draws.child("words"), stretches * length, std::ssize(things));
    auto const& people = topics()[0].nouns;  // king … girl, kings … girls
    auto const number_of = [&](Index i) { return static_cast<std::size_t>(at(names, i)); };
    Example example{.first = "which is it ?", .span = true};
    for (Index i = 0; i < stretches; ++i) {
      std::vector<std::string> stretch{people[number_of(i)]};
      for (Index word = i * length; word < (i + 1) * length; ++word) stretch.push_back(at(things, at(words, word)));
      if (i == answer) example.answers.push_back({joined(stretch), std::ssize(example.second)});
      example.second += joined(stretch) + " ; ";
    }
    example.second += "find " + people[6 + number_of(answer)];
    return example;
  }
};

Declared<DataKind> const matching_span_data{examples_kind<MatchingSpan>(
    "matching_span", "labelled examples: the span of a passage that matches a query to its right; a left-to-right model cannot find it")};

}  // namespace
}  // namespace heed
