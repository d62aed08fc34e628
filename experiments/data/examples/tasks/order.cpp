// Whether one thing was named before another:
//
//     king dog rose mill      dog before mill     yes
//     king dog rose mill      rose before king    no
//
// The words and their order are drawn first, and each pair of them may be asked for in either order: the words alone say nothing.

#include "experiments/data/examples/tasks/example_task.hpp"
#include "experiments/data/tasks/task.hpp"

namespace heed {

namespace {

struct Order : ExampleTask {
  Index things = 4;

  std::vector<Field> keys() override { return {field(&things, "things", "number of things that a text names; more is harder").in(2, 30)}; }
  std::vector<std::string> classes() const override { return {"no", "yes"}; }
  Index answers() const override { return 2; }
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

Declared<DataKind> const order_data{example_task_kind<Order>("order", "labelled examples: whether one thing was named before another")};

}  // namespace

}  // namespace heed
