#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "experiments/data/dataset.hpp"
#include "experiments/run/experiment.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// A run's folder, which this process has locked, or the first of the ranks that train together.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path operator/(char const* name) const { return path_ / name; }
  std::filesystem::path const& path() const { return path_; }

  /// Compares the folder's configuration with these settings. Returns its train.steps; nothing if the folder has no configuration. Throws
  /// FolderError, naming the keys that differ; only train.steps may have grown.
  std::optional<Index> compare(Experiment& settings) const;
  /// Begins to write in the folder, where a run with these settings goes on from `step`: writes the resolved configuration and removes what
  /// is no longer true: the summary of a run of fewer steps, states of other steps, parts of files that a killed process has left. Throws
  /// Error if the disk is full, or the summary stays.
  void begin(Experiment& settings, Index step) const;

 private:
  std::filesystem::path path_;
};

/// The data that a run was trained on, read again, with `split` held out. `path`: the run's folder or its checkpoint. Throws ConfigError if
/// the data have no such split, FileError if they do not exist or differ from those of the training.
std::unique_ptr<Dataset> data_of(TrainedModel const& run, std::filesystem::path const& path, Folders const& folders,
                                 std::string const& split = "validation", bool quiet = true);

}  // namespace heed
