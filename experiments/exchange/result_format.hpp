#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A file format for results of runs and ablations, to be read by other programs; declared beside the code that writes it: `heed export
/// RUN… --format NAME TARGET`.
struct ResultFormat {
  std::string name, help;
  std::vector<std::string> of;  ///< kinds of folders that it is for: "run", "ablation"
  bool several = false;         ///< accepts several folders at once
  bool folder = false;          ///< the target is a folder, not a file
  /// Writes the results in `folders` to a file, atomically, or into an empty folder. Throws FileError for a damaged folder, Error if the
  /// target cannot be written.
  std::function<void(std::vector<std::filesystem::path> const& folders, std::filesystem::path const& target)> write;
};

/// The kind of a folder, as in ResultFormat::of: "run", "ablation", or "" for neither.
std::string_view kind_of_results(std::filesystem::path const& folder);

/// The trials of an ablation that have a metrics.jsonl, sorted by name; without those moved aside.
std::vector<std::filesystem::path> trials_in(std::filesystem::path const& ablation);

}  // namespace heed
