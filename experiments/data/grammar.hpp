#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/index.hpp"
#include "autograd/random.hpp"

namespace heed {

struct DataContext;
struct HashedFile;

/// A probabilistic context-free grammar over words, without empty rules: sampling, exact probabilities of sentences, exact entropy.
///
/// Read from YAML. A symbol with a capital first letter is a nonterminal, everything else is a word. Each nonterminal has alternatives with
/// weights (normalised to sum to one); a list gives its members equal weights; a single alternative needs none:
///
///     start: Sentence
///     features:
///       number: [one, many]
///     rules:
///       Sentence:
///         Subject[number] Verb[number]: 3      # number agrees; both of its values are equally likely
///         say Sentence: 1
///       Subject[number]: the Noun[number]
///       Noun[one]: [dog, cat]
///       Noun[many]: [dogs, cats]
///       …
///
///     agreement:                             # optional: reports accuracy by distance
///       feature: number                      # the first word of a Verb agrees in number with the Noun before
///       from: Noun
///       to: [Verb]
///
/// A rule with features stands for one rule per value. A feature of the left side has the same value on the right; one that occurs only on
/// the right is summed over, with equal shares of the weight.
class Grammar {
 public:
  /// Throws FileError "PATH:LINE:COLUMN: …" for an invalid grammar: unknown keys, nonterminals without rules, unreachable or
  /// non-terminating ones, a repeated alternative, a symbol that derives itself, infinite expected length.
  static Grammar read(std::string_view text, std::string const& path);

  /// The words, sorted; a sentence is a list of indices into them.
  std::vector<std::string> const& words() const { return words_; }
  std::size_t nonterminals() const { return names_.size(); }
  std::size_t rules() const { return rules_.size(); }

  struct Sentence {
    std::vector<std::int32_t> words;
    double log_probability = 0;  ///< of the derivation: log P of the sentence if that is its only one
    /// Positions of two words that agree.
    struct Agreement {
      std::size_t from, to;
    };
    std::vector<Agreement> agreements;
  };
  /// Per word, the value (by number) of `agreement`'s feature that it has as the first word of a `to` symbol; −1: none or several. Empty
  /// without `agreement`.
  std::vector<Index> const& agreement_values() const { return agreement_values_; }
  /// A sentence of at most `longest` words, by rejection. Throws Error that begins with data.longest if none of 10,000 is so short.
  Sentence sample(Stream const& stream, Index longest) const;

  /// log P(sentence), the sum over all of its derivations (inside algorithm); −∞ if it is not in the language.
  double log_probability(std::span<std::int32_t const> sentence) const;
  /// How many derivations a sentence has: 1 for every sentence of an unambiguous grammar.
  double derivations(std::span<std::int32_t const> sentence) const;

  /// Entropy of a derivation in nats; equals a sentence's if the grammar is unambiguous. Solves H_A = Σ_r p_r (−log p_r + Σ_B H_B).
  double entropy() const { return entropy_; }
  /// Number of words of the shortest sentence.
  double shortest() const;
  /// Expected number of words of a sentence.
  double expected_length() const { return expected_length_; }

  /// The distribution of sentences, given that they have at most this many words.
  struct UpTo {
    double probability = 0;      ///< of being this short
    double entropy = 0;          ///< of the conditional distribution, in nats per sentence
    double expected_length = 0;  ///< in words
  };
  /// Exact, by recursion over lengths.
  UpTo up_to(Index longest) const;

 private:
  friend struct GrammarReader;

  // Symbols are numbers: nonterminals 0, 1, … with 0 the start; word w is ~w.
  struct GrammarRule {
    std::int32_t left;
    std::vector<std::int32_t> right;
    double probability;
    std::vector<std::pair<std::size_t, std::size_t>> agreements{};  ///< pairs of symbols on the right with an equal feature value
  };
  /// The same language in a normal form (one word, one symbol or two symbols on the right), for recursions over spans and lengths.
  struct NormalForm {
    struct NormalRule {
      std::int32_t left, right;  ///< left ← right (words, unary), left ← B right (binary)
      double probability;
    };
    std::int32_t symbols = 0;
    std::vector<std::vector<NormalRule>> words;   ///< by word: {left ← word}
    std::vector<NormalRule> unary;                ///< left ← right, ordered so that right is complete before left is computed
    std::vector<std::vector<NormalRule>> binary;  ///< by first symbol B: {left ← B right}
  };

  void check_and_order();
  void check_nonterminals() const;
  void normalise();
  void order_unary();
  void solve_expectations();
  double inside(std::span<std::int32_t const> sentence, bool count, double scale) const;
  [[noreturn]] void fail(std::int32_t symbol, std::string const& message) const;

  std::vector<std::string> words_;
  std::vector<std::string> names_;      // of the nonterminals
  std::vector<std::string> locations_;  // where each is defined
  std::vector<GrammarRule> rules_;
  std::vector<bool> is_head_;            // by nonterminal: whether it is a `from` of agreement
  std::vector<Index> agreement_values_;  // by word
  std::vector<std::size_t> first_rule_;  // rules_[first_rule_[A]] … rules_[first_rule_[A + 1]] are A's
  NormalForm normal_;
  double entropy_ = 0;
  double expected_length_ = 0;
};

/// The grammar of a file, by default of the embedded english.yaml; `file` receives its name and hash. Throws FileError if it is wrong.
Grammar read_grammar(std::optional<std::string> const& path, DataContext const& context, HashedFile& file);

}  // namespace heed
