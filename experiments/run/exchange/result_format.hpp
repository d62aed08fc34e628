#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Files in which other programs read what runs and ablations have measured, declared beside what writes them: `heed export RUN… --format
/// NAME TARGET`.
struct ResultFormat {
  std::string name, help;
  std::vector<std::string> of;  ///< what it can be written of: "run", "ablation"
  bool several = false;         ///< of several folders at once
  bool folder = false;          ///< whether the target is a folder, not a file
  /// Writes what the folders hold: a file, in one step, or into an empty folder. Throws FileError for a damaged folder, Error if it cannot
  /// be written.
  std::function<void(std::vector<std::filesystem::path> const& folders, std::filesystem::path const& target)> write;
  std::string otherwise = {};  ///< what to use for what it cannot be written of
};

/// What a folder is in ResultFormat::of; "" for neither.
std::string_view kind_of_results(std::filesystem::path const& folder);

/// The trials of an ablation that have begun: the folders in it with a metrics.jsonl, by name, but for those that were put aside.
std::vector<std::filesystem::path> trials_in(std::filesystem::path const& ablation);

}  // namespace heed
