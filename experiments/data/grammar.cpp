#include "experiments/data/grammar.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "autograd/error.hpp"

namespace heed {
namespace {

std::size_t index(std::int32_t symbol) { return static_cast<std::size_t>(symbol); }

/// Turns [A B], A [n, n], B [n, width − n], into [… X] with A X = B; by elimination with the largest pivot of each column.
void solve(std::vector<double>& rows, std::size_t n, std::size_t width) {
  for (std::size_t k = 0; k < n; ++k) {
    auto pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(rows[i * width + k]) > std::abs(rows[pivot * width + k])) pivot = i;
    if (rows[pivot * width + k] == 0) rows[pivot * width + k] = std::numeric_limits<double>::min();  // singular: X becomes huge
    std::swap_ranges(&rows[k * width], &rows[k * width] + width, &rows[pivot * width]);
    for (std::size_t i = 0; i < n; ++i) {
      auto const factor = i == k ? 0 : rows[i * width + k] / rows[k * width + k];
      if (factor == 0) continue;
      for (std::size_t j = k; j < width; ++j) rows[i * width + j] -= factor * rows[k * width + j];
    }
  }
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t j = n; j < width; ++j) rows[k * width + j] /= rows[k * width + k];
}

}  // namespace

void Grammar::fail(std::int32_t symbol, std::string const& message) const {
  throw FileError(fmt::format("{}: {} {}", locations_[index(symbol)], names_[index(symbol)], message));
}

void Grammar::check_and_order() {
  first_rule_.assign(names_.size() + 1, 0);
  for (auto const& rule : rules_) ++first_rule_[index(rule.left) + 1];
  for (std::size_t i = 0; i < names_.size(); ++i) first_rule_[i + 1] += first_rule_[i];
  check_nonterminals();
  normalise();
  order_unary();
  solve_expectations();
}

/// Every nonterminal derives some string of words, and occurs in some derivation from the start.
void Grammar::check_nonterminals() const {
  std::vector<bool> ends(names_.size()), reached(names_.size());
  reached[0] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto const& rule : rules_) {
      auto const left = index(rule.left);
      if (!ends[left] && std::ranges::all_of(rule.right, [&](auto symbol) { return symbol < 0 || ends[index(symbol)]; }))
        ends[left] = changed = true;
      for (auto const symbol : rule.right)
        if (reached[left] && symbol >= 0 && !reached[index(symbol)]) reached[index(symbol)] = changed = true;
    }
  }
  for (std::int32_t symbol = 0; index(symbol) < names_.size(); ++symbol)
    if (!ends[index(symbol)]) fail(symbol, "never ends: each of its alternatives leads back to a nonterminal without an end");
  for (std::int32_t symbol = 0; index(symbol) < names_.size(); ++symbol)
    if (!reached[index(symbol)]) fail(symbol, fmt::format("is never used: {} does not lead to it", names_[0]));
}

/// Rules of three and more symbols become chains of two, A → X Y Z: A → (X Y) Z; rules that begin alike share their chains.
void Grammar::normalise() {
  normal_.symbols = static_cast<std::int32_t>(names_.size());
  normal_.words.resize(words_.size());
  std::map<std::int32_t, std::int32_t> word_symbols;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> pairs;
  auto const add_binary = [&](std::int32_t left, std::int32_t first, std::int32_t second, double p) {
    normal_.binary.resize(index(normal_.symbols));
    normal_.binary[index(first)].push_back({left, second, p});
  };
  auto const as_symbol = [&](std::int32_t symbol) {
    if (symbol >= 0) return symbol;
    auto const [found, added] = word_symbols.emplace(symbol, normal_.symbols);
    if (added) normal_.words[index(~symbol)].push_back({normal_.symbols++, symbol, 1});
    return found->second;
  };
  for (auto const& rule : rules_) {
    if (rule.right.size() == 1) {
      auto const only = rule.right[0];
      (only < 0 ? normal_.words[index(~only)] : normal_.unary).push_back({rule.left, only, rule.probability});
      continue;
    }
    auto begun = as_symbol(rule.right[0]);
    for (std::size_t i = 1; i + 1 < rule.right.size(); ++i) {
      auto const next = as_symbol(rule.right[i]);
      auto const [found, added] = pairs.emplace(std::pair(begun, next), normal_.symbols);
      if (added) add_binary(normal_.symbols++, begun, next, 1);
      begun = found->second;
    }
    auto const last = as_symbol(rule.right.back());
    add_binary(rule.left, begun, last, rule.probability);
  }
  normal_.binary.resize(index(normal_.symbols));
}

/// Orders A → B by B's distance from the words, so that one pass completes a span; a cycle would make sentences infinitely ambiguous.
void Grammar::order_unary() {
  std::vector<int> depth(names_.size());
  for (std::size_t pass = 0;; ++pass) {
    std::int32_t changed = -1;
    for (auto const& [left, right, p] : normal_.unary)
      if (depth[index(left)] <= depth[index(right)]) {
        depth[index(left)] = depth[index(right)] + 1;
        changed = left;
      }
    if (changed < 0) break;
    if (pass > names_.size()) fail(changed, "derives itself, so that every sentence with it has infinitely many derivations");
  }
  std::stable_sort(normal_.unary.begin(), normal_.unary.end(),
                   [&](auto const& a, auto const& b) { return depth[index(a.left)] < depth[index(b.left)]; });
}

/// With M[A, B] = expected number of B's in one step from A: solves (I − M) x = b for b = 1, entropies and lengths of the single steps.
/// The expected size of a derivation is finite if and only if the solution for b = 1 is positive (I − M is then an M-matrix).
void Grammar::solve_expectations() {
  auto const n = names_.size(), width = n + 3;
  std::vector<double> rows(n * width);
  auto const at = [&](std::size_t row, std::size_t column) -> double& { return rows[row * width + column]; };
  for (std::size_t i = 0; i < n; ++i) at(i, i) = at(i, n) = 1;
  for (auto const& rule : rules_) {
    auto const row = index(rule.left);
    auto const p = rule.probability;
    at(row, n + 1) -= p * std::log(p);
    for (auto symbol : rule.right) {
      if (symbol < 0)
        at(row, n + 2) += p;
      else
        at(row, index(symbol)) -= p;
    }
  }
  solve(rows, n, width);
  for (std::int32_t symbol = 0; index(symbol) < n; ++symbol)
    if (auto const size = at(index(symbol), n); !(size > 0 && size < 1e12))
      fail(symbol, "has no finite expected length: its rules generate more nonterminals than they end");
  entropy_ = at(0, n + 1);
  expected_length_ = at(0, n + 2);
}

Grammar::Sentence Grammar::sample(Stream const& stream, Index longest) const {
  Sentence sentence;
  struct Open {
    std::int32_t symbol;
    std::int32_t from = -1, to = -1;  // the number of the agreement that it is a side of
  };
  std::vector<Open> open;              // what is still to be expanded, the leftmost last
  std::vector<std::size_t> heads;      // the word that an agreement comes from, by number
  std::vector<std::int32_t> headless;  // agreements whose `from` is being expanded
  constexpr int max_attempts = 10'000;
  std::uint64_t draw = 0;
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    sentence = {};
    open.assign(1, {0});
    heads.clear();
    headless.clear();
    // No rule is empty, so every open symbol becomes at least one word.
    while (!open.empty() && static_cast<Index>(sentence.words.size() + open.size()) <= longest) {
      auto const [symbol, from, to] = open.back();
      open.pop_back();
      if (from >= 0) headless.push_back(from);
      if (to >= 0) sentence.agreements.push_back({heads[index(to)], sentence.words.size()});
      if (symbol < 0) {
        sentence.words.push_back(~symbol);
        continue;
      }
      if (!headless.empty() && is_head_[index(symbol)]) {
        for (auto const agreement : headless) heads[index(agreement)] = sentence.words.size();
        headless.clear();
      }
      auto chosen = first_rule_[index(symbol)];
      auto const last = first_rule_[index(symbol) + 1] - 1;
      for (double left = stream.uniform(draw++); chosen < last && left >= rules_[chosen].probability; ++chosen)
        left -= rules_[chosen].probability;
      sentence.log_probability += std::log(rules_[chosen].probability);
      auto const& rule = rules_[chosen];
      for (auto next = rule.right.rbegin(); next != rule.right.rend(); ++next) open.push_back({*next});
      for (auto const& [first, second] : rule.agreements) {
        auto& from_side = open[open.size() - 1 - first].from;
        if (from_side < 0) {
          from_side = static_cast<std::int32_t>(heads.size());
          heads.push_back(sentence.words.size());
        }
        open[open.size() - 1 - second].to = from_side;
      }
    }
    if (open.empty()) return sentence;
  }
  throw Error(
      fmt::format("data.longest: of {} sentences none has at most {} words; the shortest has {}", max_attempts, longest, shortest()));
}

double Grammar::shortest() const {
  std::vector<double> min_words(names_.size(), std::numeric_limits<double>::infinity());
  for (std::size_t height = 1; height <= names_.size(); ++height)  // of a derivation, which needs no symbol twice on a path
    for (auto const& rule : rules_) {
      double words = 0;
      for (auto const symbol : rule.right) words += symbol < 0 ? 1 : min_words[index(symbol)];
      min_words[index(rule.left)] = std::min(min_words[index(rule.left)], words);
    }
  return min_words[0];
}

/// Σ over derivations of the product of their rules' probabilities times scale for each word (so that long sentences stay within the
/// range of a double), or the number of derivations.
double Grammar::inside(std::span<std::int32_t const> sentence, bool count, double scale) const {
  auto const n = sentence.size();
  if (n == 0) return 0;
  auto const symbols = index(normal_.symbols);
  std::vector<double> span(symbols);  // the values of the span at hand
  // Of the finished spans [from, to): the symbols with a value, and for lookups by symbol the dense values of one split point.
  std::vector<std::vector<std::pair<std::int32_t, double>>> chart((n + 1) * (n + 1));
  auto const at = [&](std::size_t from, std::size_t to) -> auto& { return chart[from * (n + 1) + to]; };
  std::vector<double> second(symbols);
  for (std::size_t length = 1; length <= n; ++length) {
    for (std::size_t from = 0; from + length <= n; ++from) {
      auto const to = from + length;
      std::fill(span.begin(), span.end(), 0.0);
      if (length == 1)
        for (auto const& part : normal_.words[index(sentence[from])]) span[index(part.left)] += count ? 1 : part.probability * scale;
      for (auto middle = from + 1; middle < to; ++middle) {
        if (at(from, middle).empty() || at(middle, to).empty()) continue;
        for (auto const& [symbol, value] : at(middle, to)) second[index(symbol)] = value;
        for (auto const& [symbol, value] : at(from, middle))
          for (auto const& part : normal_.binary[index(symbol)])
            span[index(part.left)] += (count ? 1 : part.probability) * value * second[index(part.right)];
        for (auto const& [symbol, value] : at(middle, to)) second[index(symbol)] = 0;
      }
      for (auto const& part : normal_.unary) span[index(part.left)] += (count ? 1 : part.probability) * span[index(part.right)];
      for (std::int32_t symbol = 0; symbol < normal_.symbols; ++symbol)
        if (span[index(symbol)] > 0) at(from, to).push_back({symbol, span[index(symbol)]});
    }
  }
  return span[0];
}

double Grammar::log_probability(std::span<std::int32_t const> sentence) const {
  double const nats_per_word = entropy_ / expected_length_;  // the scale that keeps a typical span near 1
  return std::log(inside(sentence, false, std::exp(nats_per_word))) - static_cast<double>(sentence.size()) * nats_per_word;
}

double Grammar::derivations(std::span<std::int32_t const> sentence) const { return inside(sentence, true, 1); }

Grammar::UpTo Grammar::up_to(Index longest) const {
  // For each symbol and length: P(length), and Σ P(d) (−log P(d)) over the derivations d of that length.
  auto const symbols = index(normal_.symbols);
  auto const lengths = static_cast<std::size_t>(std::max<Index>(longest, 0)) + 1;
  std::vector<double> probability(symbols * lengths), surprise(symbols * lengths);
  auto const add = [&](std::int32_t left, std::size_t length, double p, double product, double weighted) {
    probability[index(left) * lengths + length] += p * product;
    surprise[index(left) * lengths + length] += p * (weighted - std::log(p) * product);
  };
  for (std::size_t length = 1; length < lengths; ++length) {
    if (length == 1)
      for (auto const& parts : normal_.words)
        for (auto const& part : parts) add(part.left, 1, part.probability, 1, 0);
    for (std::size_t first = 0; first < symbols; ++first) {
      for (auto const& part : normal_.binary[first]) {
        double product = 0, weighted = 0;
        auto const* f = &probability[first * lengths];
        auto const* g = &surprise[first * lengths];
        auto const* f2 = &probability[index(part.right) * lengths];
        auto const* g2 = &surprise[index(part.right) * lengths];
        for (std::size_t i = 1; i < length; ++i) {
          product += f[i] * f2[length - i];
          weighted += g[i] * f2[length - i] + f[i] * g2[length - i];
        }
        add(part.left, length, part.probability, product, weighted);
      }
    }
    for (auto const& part : normal_.unary) {
      auto const right = index(part.right) * lengths + length;
      add(part.left, length, part.probability, probability[right], surprise[right]);
    }
  }
  UpTo result;
  for (std::size_t length = 1; length < lengths; ++length) {
    result.probability += probability[length];
    result.entropy += surprise[length];
    result.expected_length += static_cast<double>(length) * probability[length];
  }
  if (result.probability > 0) {
    result.entropy = result.entropy / result.probability + std::log(result.probability);
    result.expected_length /= result.probability;
  }
  return result;
}

}  // namespace heed
