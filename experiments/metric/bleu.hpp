#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/index.hpp"

namespace heed {

/// Options with sacrebleu's names, meanings and defaults (Post 2018, "A call for clarity in reporting BLEU scores").
struct BleuSettings {
  enum class Tokens { words, v13a };                  ///< none: split at blanks; 13a: mteval-v13a's rules
  enum class Smoothing { none, floor, exponential };  ///< for orders without a match: 0; `floor` matches; 1/2, 1/4 … in turn

  Tokens tokens = Tokens::v13a;
  bool lowercase = false;
  Smoothing smoothing = Smoothing::exponential;
  double floor = 0.1;
  bool effective_order = false;  ///< ignore orders of which the hypotheses have no n-gram: for single sentences
};

/// Sums over the sentences of a corpus from which BLEU is computed.
struct BleuCounts {
  static constexpr std::size_t orders = 4;

  std::array<Index, orders> matches{};  ///< n-grams of the hypotheses that occur in a reference, clipped to the reference's count
  std::array<Index, orders> totals{};   ///< n-grams of the hypotheses
  Index hypothesis = 0;                 ///< words of the hypotheses
  Index reference = 0;                  ///< words of the reference nearest in length (the shorter of ties)

  BleuCounts& operator+=(BleuCounts const& other);
  bool operator==(BleuCounts const&) const = default;
};

/// A sentence's words, tokenized as the settings say.
std::vector<std::string> bleu_words(std::string_view sentence, BleuSettings const& settings);

/// Counts of a hypothesis against its references. Throws Error without references.
BleuCounts bleu_counts(std::string_view hypothesis, std::vector<std::string> const& references, BleuSettings const& settings = {});

/// BLEU, 0 to 100: brevity penalty times the geometric mean of the precisions of 1- to 4-grams (Papineni et al. 2002); 0 without a match.
double bleu(BleuCounts const& counts, BleuSettings const& settings = {});

/// BLEU of a corpus with one reference per hypothesis. Throws Error for lists of different lengths.
double corpus_bleu(std::vector<std::string> const& hypotheses, std::vector<std::string> const& references,
                   BleuSettings const& settings = {});

}  // namespace heed
