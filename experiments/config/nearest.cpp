#include "experiments/config/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/yaml.hpp"

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
std::size_t edit_distance(std::string_view a, std::string_view b) {
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

/// Words of other programs, and their names here.
constexpr std::pair<std::string_view, std::string_view> synonyms[]{
    {"rope", "rotary"},
    {"study", "studies"},
    {"learning_rate", "lr"},
    {"zip", "together"},
    {"grid", "vary"},
    {"sweep", "vary"},
    {"exclude", "skip"},
    {"batch_size", "batch"},
    {"max_iters", "steps"},
    {"iterations", "steps"},
    {"epochs", "steps"},
    {"n_layer", "layers"},
    {"n_head", "heads"},
    {"num_heads", "heads"},
    {"n_embd", "width"},
    {"d_model", "width"},
    {"block_size", "context"},
    {"sequence_length", "context"},
    {"grad_clip", "clip"},
    {"bahdanau", "additive"},
    {"multiplicative", "general"},
    {"bilinear", "general"},
    {"positional_encoding", "position"},
};

/// A dotted name without the parts that it has in common with another at its beginning and its end: what a mistake is in.
std::pair<std::string_view, std::string_view> apart(std::string_view a, std::string_view b) {
  for (auto at = a.find('.'); at != a.npos && b.substr(0, at + 1) == a.substr(0, at + 1); at = a.find('.')) {
    a.remove_prefix(at + 1);
    b.remove_prefix(at + 1);
  }
  for (auto at = a.rfind('.'); at != a.npos && b.size() > a.size() - at && b.ends_with(a.substr(at)); at = a.rfind('.')) {
    b.remove_suffix(a.size() - at);
    a.remove_suffix(a.size() - at);
  }
  return {a, b};
}

/// The most edits that a word may be away from what it means.
std::size_t max_edits(std::string_view word) { return std::max<std::size_t>(1, word.size() / 3); }

/// The one candidate for which something holds; nothing if none or several do.
template <class F>
std::string only_one(std::vector<std::string> const& candidates, F holds) {
  auto const first = std::find_if(candidates.begin(), candidates.end(), holds);
  if (first == candidates.end()) return "";
  bool const more = std::any_of(first + 1, candidates.end(), [&](auto const& other) { return other != *first && holds(other); });
  return more ? "" : *first;
}

}  // namespace

std::string nearest(std::string_view word, std::vector<std::string> const& candidates) {
  std::string const wanted = folded(word);
  for (auto const& [synonym, name] : synonyms)
    if (synonym == wanted && std::ranges::find(candidates, name) != candidates.end()) return std::string(name);
  std::size_t best = max_edits(wanted) + 1;
  std::string result;
  for (auto const& candidate : candidates) {
    std::string const name = folded(candidate);
    auto const [word_part, name_part] = apart(wanted, name);
    std::size_t const shorter = std::min(name_part.size(), word_part.size()), longer = std::max(name_part.size(), word_part.size());
    if (shorter == 0 || longer - shorter >= best) continue;
    if (std::size_t const d = edit_distance(word_part, name_part); d < best && d <= max_edits(word_part) && d < longer) {
      best = d;
      result = candidate;
    }
  }
  if (!result.empty() || wanted.size() < 3) return result;
  for (auto const& candidate : candidates) {  // validation.bleu for bleu, and the other way round
    std::string const name = folded(candidate);
    bool const same_end = name.ends_with("." + wanted) || (wanted.ends_with("." + name) && name.size() > 2);
    if (same_end && (result.empty() || candidate.size() < result.size())) result = candidate;
  }
  if (!result.empty()) return result;
  result = only_one(candidates, [&](std::string const& candidate) { return folded(candidate).starts_with(wanted); });
  if (!result.empty() || wanted.size() < 5) return result;
  return only_one(candidates, [&](std::string const& candidate) { return folded(candidate).find(wanted) != std::string::npos; });
}

std::string did_you_mean(std::string_view word, std::vector<std::string> const& candidates) {
  std::string const guess = nearest(word, candidates);
  return guess.empty() ? "" : "; did you mean '" + guess + "'?";
}

void expect_known(std::string const& what, std::string const& name, std::vector<std::string> const& known, std::string const& sort) {
  if (std::ranges::find(known, name) == known.end())
    throw ConfigError(what, fmt::format("there is no {}{}'{}'{} (there are {})", sort, sort.empty() ? "" : " ", name,
                                        did_you_mean(name, known), fmt::join(known, ", ")));
}

std::string listed(std::vector<std::string> const& names, std::string_view word) {
  if (names.size() < 2) return names.empty() ? "" : names[0];
  return fmt::format("{} {} {}", fmt::join(names.begin(), names.end() - 1, ", "), word, names.back());
}

void expect_ending(std::string const& what, std::filesystem::path const& file, std::vector<std::string> const& endings) {
  if (std::ranges::find(endings, file.extension().string()) == endings.end())
    throw ConfigError(what, fmt::format("wants a file that ends in {}, but found '{}'", listed(endings, "or"), file.string()));
}

}  // namespace heed
