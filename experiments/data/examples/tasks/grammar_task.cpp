#include "experiments/data/examples/tasks/grammar_task.hpp"

#include <span>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/grammar_data.hpp"

namespace heed {

std::string text_of(Grammar const& grammar, std::span<std::int32_t const> words) {
  return joined(mapped(words, [&](std::int32_t word) { return at(grammar.words(), word); }));
}

ExampleTask::Write GrammarTask::open(DataContext const& context) const {
  HashedFile file;
  auto const grammar = std::make_shared<Grammar const>(read_grammar(path, context, file));
  if (grammar->agreement_values().empty()) throw FileError(file.file + ": does not define which words agree (agreement: …)");
  return [grammar, this](Index answer, Stream const& draws) { return write(*grammar, answer, draws); };
}

ReadFiles GrammarTask::files(DataContext const& context) const {
  HashedFile file;
  read_grammar(path, context, file);
  return {{"grammar", file}};
}

std::vector<Field> GrammarTask::keys() {
  return {field(&path, "path", "grammar file (default: the embedded configs/data/english.yaml)"),
          field(&longest, "longest", "longest sentence in words; longer ones are left out").in(2, 1000),
          field(&distance, "distance", "least number of words from a noun to its verb; more is harder").in(1, 1000)};
}

GrammarTask::SentenceWithVerb GrammarTask::agreeing_sentence(Grammar const& grammar, Stream const& draws) const {
  constexpr std::uint64_t most = 10'000;
  for (std::uint64_t attempt = 0; attempt < most; ++attempt) {
    auto sentence = grammar.sample(draws.child("sentence").child(attempt), longest);
    for (auto const& [from, to] : sentence.agreements)
      if (to - from >= static_cast<std::size_t>(distance) && at(grammar.agreement_values(), sentence.words[to]) >= 0)
        return {std::move(sentence.words), to};
  }
  throw Error(
      fmt::format("data.distance: of sentences of at most {} words hardly any has a verb {} words behind its noun", longest, distance));
}

}  // namespace heed
