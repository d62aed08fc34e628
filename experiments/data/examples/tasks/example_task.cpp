#include "experiments/data/examples/tasks/example_task.hpp"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"

namespace heed {

std::string joined(std::vector<std::string> const& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::vector<Field> ExampleTask::source_fields() {
  return extended(keys(), {field(&training, "training", "number of training examples").in(1, 1e6),
                           field(&validation, "validation", "number of held-out examples, the same for every seed").in(1, 1e6)});
}

Examples ExampleTask::read(DataContext const& context) {
  std::string const& name = context.kind;
  Examples examples;
  examples.classes = classes();
  examples.files = open(context);
  std::set<std::pair<std::string, std::string>> known;
  for (Index i = 0; i < validation; ++i) {
    examples.held_out.push_back(write(i % answers(), Stream(0, name + ".held_out").child(static_cast<std::uint64_t>(i))));
    known.emplace(examples.held_out.back().first, examples.held_out.back().second);
    examples.held_out.back().location = fmt::format("{}: held-out example {}", name, i);
  }
  constexpr std::uint64_t most = 1'000;
  for (Index i = 0; i < training; ++i) {
    auto const draws = Stream(context.seed, "data").child(static_cast<std::uint64_t>(i));
    auto example = write(i % answers(), draws);
    for (std::uint64_t attempt = 0; known.contains({example.first, example.second}); ++attempt) {
      if (attempt == most) throw Error(fmt::format("data.validation: {} examples are nearly all that {} has", validation, name));
      example = write(i % answers(), draws.child(attempt));
    }
    example.location = fmt::format("{}: training example {}", name, i);
    examples.training.push_back(std::move(example));
  }
  return examples;
}

}  // namespace heed
