#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace heed {

/// "lr" of "train.optimizer.lr".
std::string last_word(std::string const& key);
/// The value of a key in short: of a section its values one after the other, without their keys; of an empty text "none".
std::string label_of(std::string const& level);

/// A key that arms vary, with its values in the order in which they come.
struct Factor {
  std::string key;
  std::vector<std::string> levels;
  std::vector<std::string> labels;  ///< of the levels, short: sparsemax for {align: sparsemax}
};

/// Arms that combine the values of two keys or more.
struct Grid {
  std::vector<Factor> factors;
  std::vector<std::vector<std::size_t>> places;  ///< of each arm its level of each factor; empty for an arm that is no combination

  std::optional<std::size_t> arm_at(std::vector<std::size_t> const& levels) const;
  /// Every combination of levels of the factors but those that are left out; these have level 0.
  std::vector<std::vector<std::size_t>> combinations_without(std::vector<std::size_t> const& left_out) const;
  /// The last word of a factor's key, or the key where two have the same.
  std::string name(std::size_t factor) const;
};

using Keys = std::vector<std::pair<std::string, std::string>>;

/// The grid of arms that set these keys. Nothing if they vary one key, or if their combinations are far from all that there could be.
std::optional<Grid> grid_of(std::vector<Keys> const& arms);

}  // namespace heed
