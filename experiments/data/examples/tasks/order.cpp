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
  std::int64_t things = 4;

  std::vector<Field> keys() override { return {field(&things, "things", "number of things that a text names; more is harder").in(2, 30)}; }
  std::vector<std::string> classes() const override { return {"no", "yes"}; }
  std::int64_t answers() const override { return 2; }
  std::string untrue() const override { return "no"; }

  Write open(DataContext const&) const override {
    std::vector<std::string> nouns;
    for (auto const& topic : topics()) nouns.insert(nouns.end(), topic.nouns.begin(), topic.nouns.end());
    return [named = things, nouns](std::int64_t answer, Stream const& draws) {
      std::vector<std::string> text;
      for (auto const noun : different_numbers(draws.child("nouns"), named, std::ssize(nouns)))
        text.push_back(nouns[static_cast<std::size_t>(noun)]);
      auto asked = different_numbers(draws.child("asked"), 2, named);
      if ((asked[0] < asked[1]) != (answer == 1)) std::swap(asked[0], asked[1]);
      auto const& a = text[static_cast<std::size_t>(asked[0])];
      auto const& b = text[static_cast<std::size_t>(asked[1])];
      return Example{.first = joined(text), .second = a + " before " + b, .label = answer == 1 ? "yes" : "no"};
    };
  }
};

Declared<DataKind> const order_data{example_task_kind<Order>("order", "labelled examples: whether one thing was named before another")};

}  // namespace

}  // namespace heed
