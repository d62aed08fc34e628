#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/random.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/sequence_pair.hpp"

namespace heed {

/// A pair while a task makes it, of numbers of words, and which word of the target comes from which of the source.
struct PairRow : SequencePair {
  std::vector<Link> links;
  bool certain = false;  ///< the first word, whatever the source is, and with it the length: of held-out targets, it and <eos> do not count

  /// Appends a word to the target that comes from no word of the source in particular, or surely from the one at a place.
  void say(std::int32_t word) { target.push_back(word); }
  void say(std::int32_t word, std::size_t from) {
    links.push_back({std::ssize(target), static_cast<std::int64_t>(from)});
    say(word);
  }
  /// The last word said comes from one of those at the places first … last − 1.
  void said_from(std::size_t first, std::size_t last) {
    for (auto from = first; from < last; ++from) links.push_back({std::ssize(target) - 1, static_cast<std::int64_t>(from), false});
  }
};

/// A synthetic task whose answer is a sequence of its own, for encoder–decoders: settings, and how one pair is drawn from them.
struct PairTask : Settings {
  /// All words of both sequences, sorted.
  virtual std::vector<std::string> words() const = 0;
  /// The most words that a source and a target have.
  virtual std::pair<std::int64_t, std::int64_t> longest() const = 0;
  /// Makes a pair, all of its choices drawn from `draws`.
  virtual PairRow draw(Stream const& draws, bool held_out) const = 0;
};

/// A task of which the source is a sequence of random words 1 … vocabulary.
struct RandomPairs : PairTask {
  std::int64_t length = 10;
  std::optional<std::int64_t> shortest;
  std::optional<std::int64_t> test_length;
  std::optional<std::int64_t> test_shortest;
  std::int64_t vocabulary = 16;

  /// Says the target to `row`, whose source is there and may be changed, in numbers of words 0 … vocabulary − 1.
  virtual void answer(PairRow& row) const = 0;
  /// The most words of a target that a word of the source leads to.
  virtual std::int64_t most() const { return 1; }

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
  std::vector<std::string> words() const override;
  std::pair<std::int64_t, std::int64_t> longest() const override;
  PairRow draw(Stream const& draws, bool held_out) const override;
};

/// A task of pairs, for `data: {kind: pairs, task: {kind: …}}`.
using PairKind = KindOf<PairTask>;

}  // namespace heed
