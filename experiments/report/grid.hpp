#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace heed {

/// "lr" of "train.optimizer.lr".
std::string last_word(std::string const& key);
/// A short label for a key's value: a section's values without their keys; "none" for an empty text.
std::string label_of(std::string const& level);

/// A varied key and its values in order of appearance.
struct Factor {
  std::string key;
  std::vector<std::string> levels;
  std::vector<std::string> labels;  ///< short names of the levels: sparsemax for {align: sparsemax}
};

/// Arms that combine the values of at least two keys.
struct Grid {
  std::vector<Factor> factors;
  std::vector<std::vector<std::size_t>> levels_by_arm;  ///< per arm, its level of each factor; empty for an arm outside the grid

  std::optional<std::size_t> arm_at(std::vector<std::size_t> const& levels) const;
  /// All combinations of the levels of the factors that are not left out; those left out have level 0.
  std::vector<std::vector<std::size_t>> combinations_without(std::vector<std::size_t> const& left_out) const;
  /// The last word of a factor's key, or the whole key if two share it.
  std::string name(std::size_t factor) const;
};

/// Keys with their values, as text.
using KeyValues = std::vector<std::pair<std::string, std::string>>;

/// The grid of arms that set these keys. Nothing if they vary one key, or if too few of the possible combinations exist.
std::optional<Grid> grid_of(std::vector<KeyValues> const& arms);

}  // namespace heed
