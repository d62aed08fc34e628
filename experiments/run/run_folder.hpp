#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "experiments/data/dataset.hpp"
#include "experiments/run/experiment.hpp"
#include "experiments/run/folder.hpp"
#include "experiments/run/session.hpp"

namespace heed {

/// A run's folder, held by this process alone while it lives; without a lock by another one, the first of the ranks that train together.
class RunFolder {
 public:
  RunFolder(std::filesystem::path path, std::optional<FolderLock> lock) : lock_(std::move(lock)), path_(std::move(path)) {}

  std::filesystem::path operator/(char const* name) const { return path_ / name; }
  std::filesystem::path const& path() const { return path_; }

  /// Throws FolderError, naming the keys that differ, if the folder holds another configuration; only train.steps may have grown. Returns
  /// what it was; nothing for a folder without a configuration.
  std::optional<std::int64_t> compare(Experiment& settings) const;
  /// Writes the resolved configuration; a summary of fewer steps is no longer true. Throws Error if the disk is full.
  void claim(Experiment& settings) const;
  /// Throws FolderError if another process has taken the folder over, because this one was stopped for too long.
  void check_held() const;

 private:
  std::optional<FolderLock> lock_;
  std::filesystem::path path_;
};

/// The data that a run was trained on, read again, with `split` held out. `path`: the run's folder or its checkpoint. Throws ConfigError
/// for data without that part, FileError if they are not there, or are others than those of the training.
std::unique_ptr<Dataset> data_of(TrainedModel const& run, std::filesystem::path const& path, Places const& places,
                                 std::string const& split = "validation", bool quiet = true);

}  // namespace heed
