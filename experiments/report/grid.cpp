#include "experiments/report/grid.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "autograd/index.hpp"

namespace heed {

std::string last_word(std::string const& key) { return key.substr(key.rfind('.') + 1); }

std::string label_of(std::string const& level) {
  std::string label, word;
  for (std::size_t i = 0; i <= level.size(); ++i) {
    char const c = i < level.size() ? level[i] : ',';
    if (c == ',') {
      label += (label.empty() ? "" : "-") + word;
      word.clear();
    } else if (c == ':') {
      word.clear();
    } else if (std::string_view("{}[]\" ").find(c) == std::string_view::npos) {
      word += c;
    }
  }
  if (!label.empty()) return label;
  return level == "\"\"" ? "none" : level;  // as arms are named
}

namespace {

/// Labels of all levels; the levels themselves where two would have the same.
std::vector<std::string> labels_of(std::vector<std::string> const& levels) {
  auto const labels = mapped(levels, label_of);
  return std::set(labels.begin(), labels.end()).size() == labels.size() ? labels : levels;
}

/// The keys that more than half of the arms set, with two values or more.
std::vector<Factor> factors_of(std::vector<KeyValues> const& arms) {
  std::vector<Factor> factors;
  for (auto const& keys : arms) {
    for (auto const& [key, value] : keys) {
      auto factor = std::ranges::find(factors, key, &Factor::key);
      if (factor == factors.end()) factor = factors.insert(factor, {key, {}, {}});
      if (std::ranges::find(factor->levels, value) == factor->levels.end()) factor->levels.push_back(value);
    }
  }
  std::erase_if(factors, [&](Factor const& factor) {
    auto const sets = [&](KeyValues const& keys) { return std::ranges::count(keys, factor.key, &KeyValues::value_type::first) > 0; };
    return factor.levels.size() < 2 || 2 * std::ranges::count_if(arms, sets) <= std::ssize(arms);
  });
  for (auto& factor : factors) factor.labels = labels_of(factor.levels);
  return factors;
}

/// Its level of each factor; empty for an arm that sets other keys than the factors'.
std::vector<std::size_t> levels_of(KeyValues const& keys, std::vector<Factor> const& factors) {
  std::vector<std::size_t> levels;
  for (auto const& factor : factors) {
    auto const own = std::ranges::find(keys, factor.key, &KeyValues::value_type::first);
    if (own == keys.end()) return {};
    levels.push_back(static_cast<std::size_t>(std::ranges::find(factor.levels, own->second) - factor.levels.begin()));
  }
  return keys.size() == factors.size() ? levels : std::vector<std::size_t>{};
}

}  // namespace

std::optional<std::size_t> Grid::arm_at(std::vector<std::size_t> const& levels) const {
  auto const found = std::ranges::find(levels_by_arm, levels);
  if (found == levels_by_arm.end()) return std::nullopt;
  return static_cast<std::size_t>(found - levels_by_arm.begin());
}

std::vector<std::vector<std::size_t>> Grid::combinations_without(std::vector<std::size_t> const& left_out) const {
  std::vector<std::vector<std::size_t>> all{{}};
  for (std::size_t f = 0; f < factors.size(); ++f) {
    std::size_t const levels = std::ranges::find(left_out, f) == left_out.end() ? factors[f].levels.size() : 1;
    auto const before = std::exchange(all, {});
    for (std::size_t i = 0; i < before.size() * levels; ++i) {
      all.push_back(before[i / levels]);
      all.back().push_back(i % levels);
    }
  }
  return all;
}

std::string Grid::name(std::size_t factor) const {
  auto const word = last_word(factors[factor].key);
  bool const alone = std::ranges::count_if(factors, [&](Factor const& other) { return last_word(other.key) == word; }) == 1;
  return alone ? word : factors[factor].key;
}

std::optional<Grid> grid_of(std::vector<KeyValues> const& arms) {
  Grid grid{.factors = factors_of(arms), .levels_by_arm = {}};
  if (grid.factors.size() < 2) return std::nullopt;
  double cells = 1, filled = 0;
  for (auto const& factor : grid.factors) cells *= static_cast<double>(factor.levels.size());
  for (auto const& keys : arms) {
    auto levels = levels_of(keys, grid.factors);
    if (!levels.empty() && grid.arm_at(levels)) levels.clear();  // a second arm of the same values
    filled += levels.empty() ? 0 : 1;
    grid.levels_by_arm.push_back(std::move(levels));
  }
  if (filled < 0.75 * cells) return std::nullopt;  // keys that move in step, for one
  return grid;
}

}  // namespace heed
