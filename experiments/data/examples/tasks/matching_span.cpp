// The stretch that begins with what is asked for last:
//
//     king mill ; nun vine ; boy clocks ; queen dog ; find nuns        nun vine
//
// The question is the same in every example: the requested span is named after all spans. A left-to-right model cannot exceed chance, 1 /
// stretches: its state at a token depends only on what precedes it, which up to the end of the last span is the same for every answer, and
// answers are equally likely; so its scores of the spans' tokens are independent of the answer. Later tokens do not help either: no word of
// an answer occurs there (nuns is not nun). Naming the requested span *before* the spans, with its match behind each start, would not work:
// marking the last start without a match so far would then be correct. A bidirectional model sees at a start whether it matches.

#include "experiments/data/examples/tasks/example_task.hpp"
#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

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

Declared<DataKind> const matching_span_data{example_task_kind<MatchingSpan>(
    "matching_span", "labelled examples: the span of a passage that matches a query to its right; a left-to-right model cannot find it")};

}  // namespace

}  // namespace heed
