#include "experiments/metric/bleu.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/config/table.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Period and comma, for which 13a considers the neighbouring characters.
bool is_point(char c) { return c == '.' || c == ','; }

/// ASCII punctuation that is always a word of its own: all but ' - . ,
bool stands_alone(char c) {
  return c > ' ' && c < 0x7F && !std::isalnum(static_cast<unsigned char>(c)) && c != '\'' && c != '-' && !is_point(c);
}

/// Parts neighbours for which before(a) and after(b): "ab" becomes "a b ", or " a b". Matches do not overlap, as in a regular expression.
template <class Before, class After>
std::string spaced(std::string_view text, Before before, After after, bool blank_in_front) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !before(text[i]) || !after(text[i + 1])) {
      result += text[i];
      continue;
    }
    if (blank_in_front) result += ' ';
    result += text[i];
    result += ' ';
    result += text[++i];
    if (!blank_in_front) result += ' ';
  }
  return result;
}

/// The rules of mteval-v13a.pl, as sacrebleu has them. Bytes beyond ASCII are letters to all of them.
std::string spaced_13a(std::string text) {
  for (auto const& [from, to] : {std::pair("<skipped>", ""), std::pair("-\n", ""), std::pair("\n", " "), std::pair("&quot;", "\""),
                                 std::pair("&amp;", "&"), std::pair("&lt;", "<"), std::pair("&gt;", ">")})
    replace_all(text, from, to);
  std::string alone = " ";
  for (char const c : text) alone += stands_alone(c) ? std::string{' ', c, ' '} : std::string{c};
  alone += ' ';
  auto const no_digit = [](char c) { return !is_digit(c); };
  auto const dash = [](char c) { return c == '-'; };
  text = spaced(alone, no_digit, is_point, false);
  text = spaced(text, is_point, no_digit, true);
  return spaced(text, is_digit, dash, false);
}

/// Whether Python's str.split() splits at this character.
bool is_blank(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

/// The small letter of a Latin, Greek or Cyrillic capital (not of İ, which has two, nor the Σ at the end of a word); others as they are.
char32_t small(char32_t c) {
  auto const in = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  auto const even = [c] { return c + (c % 2 == 0 ? 1 : 0); };
  auto const odd = [c] { return c + (c % 2 == 1 ? 1 : 0); };
  if (in('A', 'Z') || (in(0xC0, 0xDE) && c != 0xD7)) return c + 0x20;
  if (c == 0x178) return 0xFF;
  if (c == 0x1E9E) return 0xDF;
  if (in(0x139, 0x148) || in(0x179, 0x17E) || in(0x1CD, 0x1DC) || in(0x4C1, 0x4CE) || c == 0x1AF) return odd();
  if ((in(0x100, 0x137) && c != 0x130 && c != 0x131) || in(0x14A, 0x177) || c == 0x1A0) return even();
  if (in(0x1DE, 0x1EF) || in(0x1F8, 0x21F) || in(0x222, 0x233)) return even();
  if (in(0x1E00, 0x1E95) || in(0x1EA0, 0x1EFF)) return even();
  if (c == 0x386) return 0x3AC;
  if (in(0x388, 0x38A)) return c + 37;
  if (c == 0x38C) return 0x3CC;
  if (in(0x38E, 0x38F)) return c + 63;
  if (in(0x391, 0x3AB) && c != 0x3A2) return c + 0x20;
  if (in(0x400, 0x40F)) return c + 0x50;
  if (in(0x410, 0x42F)) return c + 0x20;
  if (in(0x460, 0x481) || in(0x48A, 0x4BF) || in(0x4D0, 0x52F)) return even();
  return c;
}

/// Calls f(bytes, code point) for each character; of a byte that is not UTF-8 there is none, as U+FFFD.
template <class F>
void each_character(std::string_view text, F f) {
  for (std::size_t i = 0; i < text.size();) {
    auto const start = i;
    auto const character = decode_utf8(text, i);
    f(text.substr(start, i - start), character.value_or(0xFFFD));
  }
}

std::string lower(std::string_view text) {
  std::string result;
  each_character(text, [&](std::string_view bytes, char32_t c) {
    auto const other = small(c);
    result += other == c ? std::string(bytes) : to_utf8(other);
  });
  return result;
}

using NGrams = std::map<std::vector<std::string_view>, Index>;

NGrams n_grams(std::vector<std::string> const& words, std::size_t n) {
  NGrams counts;
  for (std::size_t i = 0; i + n <= words.size(); ++i)
    ++counts[{words.begin() + static_cast<std::ptrdiff_t>(i), words.begin() + static_cast<std::ptrdiff_t>(i + n)}];
  return counts;
}

}  // namespace

BleuCounts& BleuCounts::operator+=(BleuCounts const& other) {
  for (std::size_t n = 0; n < orders; ++n) {
    matches[n] += other.matches[n];
    totals[n] += other.totals[n];
  }
  hypothesis += other.hypothesis;
  reference += other.reference;
  return *this;
}

std::vector<std::string> bleu_words(std::string_view sentence, BleuSettings const& settings) {
  auto text = settings.lowercase ? lower(sentence) : std::string(sentence);
  text.erase(text.find_last_not_of(" \t\n\v\f\r") + 1);  // so that a dash at the end is not before a line end
  if (settings.tokens == BleuSettings::Tokens::v13a) text = spaced_13a(std::move(text));
  std::vector<std::string> words(1);
  each_character(text, [&](std::string_view bytes, char32_t c) {
    if (!is_blank(c))
      words.back() += bytes;
    else if (!words.back().empty())
      words.emplace_back();
  });
  if (words.back().empty()) words.pop_back();
  return words;
}

BleuCounts bleu_counts(std::string_view hypothesis, std::vector<std::string> const& references, BleuSettings const& settings) {
  if (references.empty()) throw Error("BLEU: a hypothesis has no reference");
  auto const words = bleu_words(hypothesis, settings);
  auto const wanted = mapped(references, [&](std::string const& reference) { return bleu_words(reference, settings); });

  BleuCounts counts;
  auto const size = std::ssize(words);
  auto const nearest = std::ranges::min_element(
      wanted, {}, [&](auto const& reference) { return std::pair(std::abs(std::ssize(reference) - size), std::ssize(reference)); });
  counts.hypothesis = size;
  counts.reference = std::ssize(*nearest);
  for (std::size_t n = 1; n <= BleuCounts::orders; ++n) {
    NGrams allowed;
    for (auto const& reference : wanted)
      for (auto const& [n_gram, count] : n_grams(reference, n)) allowed[n_gram] = std::max(allowed[n_gram], count);
    for (auto const& [n_gram, count] : n_grams(words, n)) {
      counts.totals[n - 1] += count;
      if (auto const found = allowed.find(n_gram); found != allowed.end()) counts.matches[n - 1] += std::min(count, found->second);
    }
  }
  return counts;
}

double bleu(BleuCounts const& counts, BleuSettings const& settings) {
  if (std::ranges::all_of(counts.matches, [](auto count) { return count == 0; })) return 0;
  double sum = 0, smoothed = 1;
  std::size_t orders = 0;
  for (; orders < BleuCounts::orders && counts.totals[orders] > 0; ++orders) {
    auto matches = static_cast<double>(counts.matches[orders]);
    if (matches == 0 && settings.smoothing == BleuSettings::Smoothing::exponential) matches = smoothed /= 2;
    if (matches == 0 && settings.smoothing == BleuSettings::Smoothing::floor) matches = settings.floor;
    sum += std::log(matches / static_cast<double>(counts.totals[orders]));  // −∞ for 0
  }
  if (orders < BleuCounts::orders && !settings.effective_order) return 0;
  auto const ratio = static_cast<double>(counts.reference) / static_cast<double>(counts.hypothesis);
  return 100 * std::exp(std::min(0.0, 1 - ratio) + sum / static_cast<double>(orders));
}

double corpus_bleu(std::vector<std::string> const& hypotheses, std::vector<std::string> const& references, BleuSettings const& settings) {
  if (hypotheses.size() != references.size())
    throw Error(fmt::format("BLEU: {} hypotheses, but {} references", hypotheses.size(), references.size()));
  BleuCounts counts;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) counts += bleu_counts(hypotheses[i], {references[i]}, settings);
  return bleu(counts, settings);
}

}  // namespace heed
