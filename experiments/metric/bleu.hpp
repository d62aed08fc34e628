#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// What sacrebleu calls by the same names (Post 2018, "A call for clarity in reporting BLEU scores"); the defaults are its own.
struct BleuSettings {
  enum class Tokens { words, v13a };                  ///< none: what stands between blanks; 13a: mteval-v13a's rules
  enum class Smoothing { none, floor, exponential };  ///< of orders without a match: 0; `floor` matches; 1/2, 1/4 …, one after another

  Tokens tokens = Tokens::v13a;
  bool lowercase = false;
  Smoothing smoothing = Smoothing::exponential;
  double floor = 0.1;
  bool effective_order = false;  ///< orders of which the hypotheses have no n-gram do not count: for single sentences
};

/// What BLEU is computed from: sums over the sentences of a corpus.
struct BleuCounts {
  static constexpr std::size_t orders = 4;

  std::array<std::int64_t, orders> matches{};  ///< n-grams of the hypotheses that their references have, no more often than one has them
  std::array<std::int64_t, orders> totals{};   ///< n-grams of the hypotheses
  std::int64_t hypothesis = 0;                 ///< words of the hypotheses
  std::int64_t reference = 0;                  ///< words of that reference of each which is nearest in length (the shorter of two)

  BleuCounts& operator+=(BleuCounts const& other);
  bool operator==(BleuCounts const&) const = default;
};

/// The words of a sentence, as BLEU counts them.
std::vector<std::string> bleu_words(std::string_view sentence, BleuSettings const& settings);

/// A hypothesis against its references. Throws Error without any.
BleuCounts bleu_counts(std::string_view hypothesis, std::vector<std::string> const& references, BleuSettings const& settings = {});

/// BLEU of 0 … 100: the brevity penalty times the geometric mean of the precisions of 1- to 4-grams (Papineni et al. 2002). 0 without any
/// match.
double bleu(BleuCounts const& counts, BleuSettings const& settings = {});

/// BLEU of a corpus with one reference for each hypothesis. Throws Error if there are not as many.
double corpus_bleu(std::vector<std::string> const& hypotheses, std::vector<std::string> const& references,
                   BleuSettings const& settings = {});

}  // namespace heed
