#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utf8proc.h>

#include "autograd/index.hpp"
#include "experiments/data/examples/example.hpp"
#include "nn/files/utf8.hpp"

namespace heed {
namespace {

/// Whether Python's str.split() splits at this character.
bool parts_words(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

/// Letters and numbers, what \w is of text without underscores.
bool is_of_word(char32_t c) {
  auto const category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

bool is_ascii_punctuation(char32_t c) { return c > 0x20 && c < 0x7F && !is_of_word(c); }

/// Whether the Σ at this position ends a word: a letter is before it and none behind; marks and some punctuation do not count.
bool is_final(std::u32string const& text, std::ptrdiff_t position) {
  auto const is = [](std::string_view categories, char32_t c) {
    return categories.find(utf8proc_category_string(static_cast<utf8proc_int32_t>(c))) != categories.npos;
  };
  auto const counts = [&](char32_t c) {
    return !is("Mn Me Cf Lm Sk", c) && std::u32string_view(U"':.·\u0387՟״‘’․‧︓﹒﹕＇．：").find(c) == std::u32string_view::npos;
  };
  auto const next_is_letter = [&](auto from, auto end) {
    from = std::find_if(from, end, counts);
    auto const c = static_cast<utf8proc_int32_t>(from == end ? 0 : *from);
    return is("Lu Ll Lt", static_cast<char32_t>(c)) || utf8proc_tolower(c) != c || utf8proc_toupper(c) != c;
  };
  return next_is_letter(text.rend() - position, text.rend()) && !next_is_letter(text.begin() + position + 1, text.end());
}

/// In lower case, without ASCII punctuation; U+FFFD for bytes that are not UTF-8.
std::u32string plain(std::string_view text) {
  std::u32string written, result;
  for (std::size_t i = 0; i < text.size();) written += decode_utf8(text, i).value_or(0xFFFD);
  for (std::size_t i = 0; i < written.size(); ++i) {
    auto const c = written[i];
    if (is_ascii_punctuation(c)) continue;
    if (c == 0x130)  // İ, the only letter that becomes two
      result += U"i\u0307";
    else if (c == 0x3A3 && is_final(written, static_cast<std::ptrdiff_t>(i)))
      result += U'\u03C2';
    else
      result += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  }
  return result;
}

std::vector<std::string> words_of_answer(std::string_view text) {
  auto const all = plain(text);
  std::vector<std::string> words;
  bool goes_on = false;  // the last word
  for (std::size_t i = 0; i < all.size();) {
    auto end = i;
    while (end < all.size() && is_of_word(all[end])) ++end;
    auto const run = all.substr(i, end - i);
    bool const article = run == U"a" || run == U"an" || run == U"the";
    if (article || (run.empty() && parts_words(all[i]))) {
      goes_on = false;
      i = article ? end : i + 1;
      continue;
    }
    if (!goes_on) words.emplace_back();
    goes_on = true;
    end = std::max(end, i + 1);
    for (; i < end; ++i) words.back() += to_utf8(all[i]);
  }
  return words;
}

}  // namespace

std::string normalised_answer(std::string_view text) { return fmt::format("{}", fmt::join(words_of_answer(text), " ")); }

AnswerScores answer_scores(std::string_view given, std::string_view right) {
  auto const found = words_of_answer(given), wanted = words_of_answer(right);
  AnswerScores scores{found == wanted ? 1.0 : 0.0, 0};
  if (found.empty() || wanted.empty()) return {scores.exact, scores.exact};
  std::map<std::string, Index> left;
  for (auto const& word : wanted) ++left[word];
  auto const common = static_cast<double>(std::ranges::count_if(found, [&](auto const& word) { return left[word]-- > 0; }));
  scores.f1 = 2 * common / static_cast<double>(found.size() + wanted.size());
  return scores;
}

AnswerScores answer_scores(std::string_view given, std::vector<std::string> const& right) {
  AnswerScores best;
  bool any = false;
  for (auto const& each : right) {
    if (words_of_answer(each).empty()) continue;
    auto const [exact, f1] = answer_scores(given, std::string_view(each));
    best = {std::max(best.exact, exact), std::max(best.f1, f1)};
    any = true;
  }
  return any ? best : answer_scores(given, std::string_view());
}

}  // namespace heed
