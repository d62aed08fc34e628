#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "autograd/random.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/pair_batches.hpp"

namespace heed {

/// A pair under construction, as word ids, with alignment links from target words to source words.
struct PairRow : SequencePair {
  std::vector<Link> links;
  bool certain = false;  ///< the first target word and the length do not depend on the source: in held-out targets the first word and <eos>
                         ///< are not scored

  /// Appends a word to the target, without a link, or with a sure link to a source position.
  void say(std::int32_t word) { target.push_back(word); }
  void say(std::int32_t word, std::size_t from) {
    links.push_back({std::ssize(target), static_cast<Index>(from)});
    say(word);
  }
  /// Links the last appended word to the source positions first … last − 1, not sure.
  void link_last_to(std::size_t first, std::size_t last) {
    for (auto from = first; from < last; ++from) links.push_back({std::ssize(target) - 1, static_cast<Index>(from), false});
  }
};

/// A synthetic sequence-to-sequence task for encoder–decoders: settings, and how one pair is drawn.
struct PairTask : Settings {
  /// All words of both sequences, sorted.
  virtual std::vector<std::string> words() const = 0;
  /// The most words that a source and a target have.
  virtual std::pair<Index, Index> longest() const = 0;
  /// Makes a pair; all choices are drawn from `draws`.
  virtual PairRow draw(Stream const& draws, bool held_out) const = 0;
};

/// A task of pairs, for `data: {kind: pairs, task: {kind: …}}`.
using PairKind = KindOf<PairTask>;

}  // namespace heed
