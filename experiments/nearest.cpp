#include "experiments/nearest.hpp"

#include <algorithm>
#include <cstddef>

namespace heed {
namespace {

std::string folded(std::string_view word) {
  std::string result(word);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return result;
}

/// Edit distance with swaps of neighbours (optimal string alignment), over three rows of the table.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::vector<std::string> const& candidates) {
  std::string const wanted = folded(word);
  std::size_t best = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  std::string result;
  for (auto const& candidate : candidates) {
    std::size_t const shorter = std::min(candidate.size(), wanted.size()), longer = std::max(candidate.size(), wanted.size());
    if (shorter == 0 || longer - shorter >= best) continue;
    if (std::size_t const d = distance(wanted, folded(candidate)); d < best && d < longer) {
      best = d;
      result = candidate;
    }
  }
  if (!result.empty() || wanted.size() < 3) return result;
  auto const begins = [&](std::string const& candidate) { return folded(candidate).starts_with(wanted); };
  auto const first = std::find_if(candidates.begin(), candidates.end(), begins);
  if (first == candidates.end() || std::any_of(first + 1, candidates.end(), begins)) return "";
  return *first;
}

std::string did_you_mean(std::string_view word, std::vector<std::string> const& candidates) {
  std::string const guess = nearest(word, candidates);
  return guess.empty() ? "" : "; did you mean '" + guess + "'?";
}

}  // namespace heed
