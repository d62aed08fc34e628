#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/files/input_file.hpp"
#include "nn/optimizer.hpp"
#include "nn/settings.hpp"

namespace heed {

/// A trained model without the run that it came from: what another program's files say of it, and what they are written from.
struct PortableModel {
  std::string origin;     ///< the run, or the file of its weights: what messages begin with
  Choice model;           ///< `model:`, with its settings
  Index vocabulary = 0;   ///< tokens that it knows
  NamedTensors tensors;   ///< its parameters by heed's names
  std::string tokenizer;  ///< as Dataset::tokenizer() gives it; empty: there is none
};

/// Files in which another program reads a trained model, declared beside what writes them: `heed export RUN DIR --format NAME`.
struct ModelFormat {
  std::string name, help;
  /// The settings of a model that the format cannot represent, in one line; nothing: it can be written.
  std::function<std::optional<std::string>(PortableModel const& model)> unavailable;
  /// Writes such a model into an empty folder. Returns notes for its user, a line each. Throws Error if it cannot be written.
  std::function<std::vector<std::string>(PortableModel const& model, std::filesystem::path const& folder)> write;
};

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
inline std::string_view kind_of_results(std::filesystem::path const& folder) {
  if (is_file(folder / "ablation.yaml")) return "ablation";
  return is_file(folder / "metrics.jsonl") ? "run" : "";
}

}  // namespace heed
