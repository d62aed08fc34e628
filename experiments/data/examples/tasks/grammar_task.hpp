#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/data/examples/tasks/example_task.hpp"
#include "experiments/data/grammar.hpp"

namespace heed {

/// A task on sentences of a grammar with agreement (configs/data/english.yaml), each with a verb at least a given distance from the noun it
/// agrees with.
struct GrammarTask : ExampleTask {
  std::optional<std::string> path;
  Index longest = 15, distance = 2;

  std::vector<Field> keys() override;
  /// Throws FileError for a grammar without `agreement`.
  Write open(DataContext const& context) const final;
  ReadFiles files(DataContext const& context) const final;

 protected:
  /// A sentence and the position of its verb.
  struct SentenceWithVerb {
    std::vector<std::int32_t> words;
    std::size_t verb;
  };
  virtual Example write(Grammar const& grammar, Index answer, Stream const& draws) const = 0;
  /// The first sentence drawn that has such a verb. Throws Error if hardly any has.
  SentenceWithVerb agreeing_sentence(Grammar const& grammar, Stream const& draws) const;
};

/// The text of these words of a grammar.
std::string text_of(Grammar const& grammar, std::span<std::int32_t const> words);

}  // namespace heed
