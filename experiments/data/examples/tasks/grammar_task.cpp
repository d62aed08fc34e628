#include "experiments/data/examples/tasks/grammar_task.hpp"

#include <span>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

std::string text_of(Grammar const& grammar, std::span<std::int32_t const> words) {
  return joined(mapped(words, [&](std::int32_t word) { return at(grammar.words(), word); }));
}

namespace {

std::filesystem::path file_of(std::optional<std::string> const& path, DataContext const& context) {
  return path ? locate(*path, context) : shipped("english.yaml");
}

}  // namespace

ExampleTask::Write GrammarTask::open(DataContext const& context) const {
  auto const file = file_of(path, context);
  auto const grammar = std::make_shared<Grammar const>(Grammar::read(read_text(file), file.string()));
  if (grammar->agreement_values().empty()) throw FileError(file.string() + ": does not define which words agree (agreement: …)");
  return [grammar, task = copy()](Index answer, Stream const& draws) { return task->write(*grammar, answer, draws); };
}

ReadFiles GrammarTask::files(DataContext const& context) const {
  auto const file = file_of(path, context);
  auto const text = read_text(file);
  return {{"grammar", {file.string(), sha256(text)}}};
}

std::vector<Field> GrammarTask::grammar_keys() {
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
