// How a sentence goes on (in the form of SWAG, Zellers et al. 2018):
//
//     the dogs near the old king      howl .  blooms .  sings .  hum .
//
// One option is how a sentence of the grammar went on; in the others its verb is another, with which it is no sentence: of another number
// or of another class of subjects. A language model that knows the grammar knows the answer (zero-shot, by likelihood).

#include <cmath>
#include <set>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/examples/tasks/grammar_task.hpp"

namespace heed {

namespace {

struct ContinuationTask : GrammarTask {
  Index options = 4;

  std::vector<Field> keys() override { return extended(GrammarTask::keys(), {field(&options, "options", "number of options").in(2, 6)}); }
  Index answers() const override { return options; }

  Example write(Grammar const& grammar, Index answer, Stream const& draws) const override {
    auto [words, verb] = agreeing_sentence(grammar, draws);
    std::span<std::int32_t const> const whole(words);
    Example example{.first = text_of(grammar, whole.first(verb)), .label = std::to_string(answer)};
    auto const right = text_of(grammar, whole.subspan(verb));
    std::set<std::int32_t> tried{words[verb]};
    auto const& values = grammar.agreement_values();
    for (std::uint64_t draw = 0; std::ssize(example.options) + 1 < options;) {
      if (tried.size() == values.size()) throw Error(fmt::format("data.options: '{} …' has no {} wrong ones", example.first, options - 1));
      auto const other = static_cast<std::int32_t>(draws.child("verbs").below(draw++, values.size()));
      if (!tried.insert(other).second || at(values, other) < 0) continue;
      words[verb] = other;
      if (std::isinf(grammar.log_probability(words))) example.options.push_back(text_of(grammar, whole.subspan(verb)));
    }
    example.options.insert(example.options.begin() + answer, right);
    return example;
  }
};

Declared<DataKind> const continuation_data{
    example_task_kind<ContinuationTask>("continuation", "labelled examples: the option that continues a sentence of the grammar")};

}  // namespace

}  // namespace heed
