#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/config/yaml.hpp"
#include "experiments/run/claim.hpp"

namespace heed {

/// Refuses what cannot be the name of a folder inside another one: a path that leaves it ("..", "/tmp"), parts without a name (".",
/// "a//b"), control characters, and marks that are not shown or turn the text around them. `name` was written at `place` as the key's
/// value. Throws ConfigError.
void check_folder_name(Location const& place, std::string_view key, std::string_view name);

/// The same for the name of an arm, which is one part of its trials' folders: no "/" and at most most_label bytes.
void check_arm_name(Location const& place, std::string_view name);

/// Bytes of an arm's or a grid point's name, so that "tune-ARM-POINT-seedK-HASH" is no longer than a file system allows.
constexpr std::size_t most_label = 109;

/// Any text as a part of a file's name: ASCII letters, digits, '.', '_', '+' stay, anything else becomes '-'; "none" for nothing.
std::string file_label(std::string_view text);

/// A label of most_label bytes at most: what is longer ends in a hash of it, so that different labels stay different.
std::string cut_label(std::string label);

/// A lock on a folder: flock() on a file in it, which the system lets go of when the last process that holds it ends, however it ends; and
/// a claim (claim.hpp), which holds where flock() does not, as on network file systems.
class FolderLock {
 public:
  /// Makes the folder if need be. Throws FolderError if another process is at work there, Error if it cannot be made or locked. A claim of
  /// another machine that has missed heartbeats is waited for: it beats again, or lapses.
  explicit FolderLock(std::filesystem::path const& folder);
  /// The same; nothing if another process is at work there. `name`: of the file in it that is locked.
  static std::optional<FolderLock> attempt(std::filesystem::path const& folder, std::string const& name = ".lock",
                                           Claim::LockMode mode = Claim::LockMode::alone);
  /// The same; waits while another process holds it, but not longer than `limit`: then nothing.
  static std::optional<FolderLock> wait(std::filesystem::path const& folder, std::string const& name, std::chrono::milliseconds limit);

  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(FolderLock const&) = delete;
  FolderLock& operator=(FolderLock const&) = delete;
  ~FolderLock();

  /// Lets others share what was held alone.
  void share();
  /// In a forked process, which holds the lock on when its parent ends.
  void inherit() { claim_.inherit(); }
  /// Whether another process has taken it over, because this one was stopped for too long.
  bool lost() const { return claim_.lost(); }
  /// What a forked process must keep open.
  std::vector<int> descriptors() const;

 private:
  FolderLock(int descriptor, Claim claim) : descriptor_(descriptor), claim_(std::move(claim)) {}
  int descriptor_;
  Claim claim_;
};

/// The first of NAME.old-1, NAME.old-2, … beside a folder that is free.
std::filesystem::path free_name_beside(std::filesystem::path const& folder);

/// Renames a folder to NAME.old-1, NAME.old-2, … Throws FolderError while another process is at work in it, or in a folder
/// anywhere inside it.
void put_aside(std::filesystem::path const& folder);

}  // namespace heed
