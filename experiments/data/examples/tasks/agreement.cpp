// Whether a verb agrees with its subject, far before it (Linzen et al. 2016; in the form of CoLA, Warstadt et al. 2019):
//
//     the dogs near the old king howl .       acceptable
//     the dogs near the old king howls .      unacceptable
//
// A sentence of the grammar, and in half of the examples its verb in the other number, the most similar word that has it.

#include <algorithm>

#include "experiments/data/examples/tasks/grammar_task.hpp"

namespace heed {

namespace {

/// The word of another value of the feature (number) that has the longest beginning in common with this one.
std::int32_t other_form(Grammar const& grammar, std::int32_t word) {
  auto const& values = grammar.agreement_values();
  auto const& written = at(grammar.words(), word);
  std::int32_t best = -1;
  std::ptrdiff_t most = -1;
  for (std::size_t other = 0; other < values.size(); ++other) {
    if (values[other] < 0 || values[other] == at(values, word)) continue;
    auto const& candidate = grammar.words()[other];
    auto const common = std::ranges::mismatch(written, candidate).in1 - written.begin();
    if (common > most) most = common, best = static_cast<std::int32_t>(other);
  }
  return best;
}

struct AgreementTask : GrammarTask {
  std::vector<std::string> classes() const override { return {"unacceptable", "acceptable"}; }
  Index answers() const override { return 2; }
  std::string untrue() const override { return "unacceptable"; }

  Example write(Grammar const& grammar, Index answer, Stream const& draws) const override {
    auto [words, verb] = agreeing_sentence(grammar, draws);
    if (answer == 0) words[verb] = other_form(grammar, words[verb]);
    return {.first = text_of(grammar, words), .label = at(classes(), answer)};
  }
};

Declared<DataKind> const agreement_data{
    example_task_kind<AgreementTask>("agreement", "labelled examples: whether a verb agrees with its distant subject")};

}  // namespace

}  // namespace heed
