#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/data/dataset.hpp"
#include "experiments/data/grammar.hpp"
#include "experiments/data/open.hpp"

namespace heed {

/// `data: {kind: grammar}`: sentences of a grammar, by default of configs/data/english.yaml.
struct GrammarSettings : Settings {
  std::optional<std::string> path;
  Index longest = 31;
  bool pack = false;
  Index validation = 2'000;
  Index ngram_sentences = 100'000;

  std::vector<Field> fields() override;
};

/// The grammar of a file, by default of the embedded english.yaml; `file` receives its name and hash. Throws FileError if it is wrong.
Grammar read_grammar(std::optional<std::string> const& path, DataContext const& context, HashedFile& file);

/// Sentences of at most `longest` words, drawn from a grammar conditioned on that length. The inputs are <eos> and a sentence's words, the
/// targets its words and <eos>, so that the loss is −log P of the sentence. One sentence per sequence, padded with inputs <eos> and targets
/// −1; or, packed, sentences one after another: as they are independent, −log P is still the lowest loss, but a model has to learn how far
/// back to attend. Packed training sequences are cut where they are full, because dropping sentences that do not fit would favour short
/// ones; held-out sentences stay whole. Token 0 is <eos>, token w + 1 is word w of the grammar. Training sentences are unlimited; the
/// held-out ones are the same for every seed.
///
/// Groups of targets are agreement.distance1 …: words that agree with the word at this distance before them (Linzen et al. 2016), if the
/// grammar declares agreement. References are n-gram models counted on `ngram_sentences` separate sentences; "exact", the mean −log P of
/// the held-out sentences, which is the loss of a perfect model; "entropy", its expectation. All in nats per token, <eos> included.
///
/// `file` is the grammar's. Throws FileError if hardly any sentence is this short, or if a sentence is ambiguous.
std::unique_ptr<Dataset> sentences_of(Grammar grammar, HashedFile const& file, GrammarSettings const& settings, std::uint64_t seed);

}  // namespace heed
