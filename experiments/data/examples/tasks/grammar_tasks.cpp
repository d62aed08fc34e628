#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/examples/tasks/example_task.hpp"
#include "experiments/data/grammar.hpp"

namespace heed {

namespace {

/// A task on sentences of a grammar with agreement (configs/data/english.yaml), each with a verb at least a given distance from the noun it
/// agrees with.
struct GrammarTask : ExampleTask {
  std::optional<std::string> path;
  Index longest = 15, distance = 2;
  std::shared_ptr<Grammar const> grammar;  ///< of open()

  std::vector<Field> keys() override {
    return {field(&path, "path", "grammar file (default: the embedded configs/data/english.yaml)"),
            field(&longest, "longest", "longest sentence in words; longer ones are left out").in(2, 1000),
            field(&distance, "distance", "least number of words from a noun to its verb; more is harder").in(1, 1000)};
  }

  /// Throws FileError for a grammar without `agreement`.
  ReadFiles open(DataContext const& context) final {
    HashedFile file;
    grammar = std::make_shared<Grammar const>(read_grammar(path, context, file));
    if (grammar->agreement_values().empty()) throw FileError(file.file + ": does not define which words agree (agreement: …)");
    return {{"grammar", file}};
  }

 protected:
  /// The first sentence drawn that has such a verb, and the position of the verb. Throws Error if hardly any has.
  std::pair<std::vector<std::int32_t>, std::size_t> agreeing_sentence(Stream const& draws) const {
    constexpr std::uint64_t most = 10'000;
    for (std::uint64_t attempt = 0; attempt < most; ++attempt) {
      auto sentence = grammar->sample(draws.child("sentence").child(attempt), longest);
      for (auto const& [from, to] : sentence.agreements)
        if (to - from >= static_cast<std::size_t>(distance) && at(grammar->agreement_values(), sentence.words[to]) >= 0)
          return {std::move(sentence.words), to};
    }
    throw Error(
        fmt::format("data.distance: of sentences of at most {} words hardly any has a verb {} words behind its noun", longest, distance));
  }
  std::string text_of(std::span<std::int32_t const> words) const {
    return joined(mapped(words, [&](std::int32_t word) { return at(grammar->words(), word); }));
  }
};

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

/// Whether a verb agrees with its subject, far before it (Linzen et al. 2016; in the form of CoLA, Warstadt et al. 2019):
///
///     the dogs near the old king howl .       acceptable
///     the dogs near the old king howls .      unacceptable
///
/// A sentence of the grammar, and in half of the examples its verb in the other number, the most similar word that has it.
struct AgreementTask : GrammarTask {
  std::vector<std::string> classes() const override { return {"unacceptable", "acceptable"}; }
  std::string untrue() const override { return "unacceptable"; }

  Example write(Index answer, Stream const& draws) const override {
    auto [words, verb] = agreeing_sentence(draws);
    if (answer == 0) words[verb] = other_form(*grammar, words[verb]);
    return {.first = text_of(words), .label = at(classes(), answer)};
  }
};

Declared<DataKind> const agreement_data{
    examples_kind<AgreementTask>("agreement", "labelled examples: whether a verb agrees with its distant subject")};

/// How a sentence goes on (in the form of SWAG, Zellers et al. 2018):
///
///     the dogs near the old king      howl .  blooms .  sings .  hum .
///
/// One option is how a sentence of the grammar went on; in the others its verb is another, with which it is no sentence: of another number
/// or of another class of subjects. A language model that knows the grammar knows the answer (zero-shot, by likelihood).
struct ContinuationTask : GrammarTask {
  Index options = 4;

  std::vector<Field> keys() override { return extended(GrammarTask::keys(), {field(&options, "options", "number of options").in(2, 6)}); }
  Index answers() const override { return options; }

  Example write(Index answer, Stream const& draws) const override {
    auto [words, verb] = agreeing_sentence(draws);
    std::span<std::int32_t const> const whole(words);
    Example example{.first = text_of(whole.first(verb)), .label = std::to_string(answer)};
    auto const right = text_of(whole.subspan(verb));
    std::set<std::int32_t> tried{words[verb]};
    auto const& values = grammar->agreement_values();
    for (std::uint64_t draw = 0; std::ssize(example.options) + 1 < options;) {
      if (tried.size() == values.size()) throw Error(fmt::format("data.options: '{} …' has no {} wrong ones", example.first, options - 1));
      auto const other = static_cast<std::int32_t>(draws.child("verbs").below(draw++, values.size()));
      if (!tried.insert(other).second || at(values, other) < 0) continue;
      words[verb] = other;
      if (std::isinf(grammar->log_probability(words))) example.options.push_back(text_of(whole.subspan(verb)));
    }
    example.options.insert(example.options.begin() + answer, right);
    return example;
  }
};

Declared<DataKind> const continuation_data{
    examples_kind<ContinuationTask>("continuation", "labelled examples: the option that continues a sentence of the grammar")};

}  // namespace

}  // namespace heed
