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

/// Throws ConfigError if `name`, the value of `key` at `place`, cannot name a folder inside another one: a path that leaves it ("..",
/// "/tmp"), empty parts or "." ("a//b"), control characters, invisible characters, and marks that change the direction of text.
void check_folder_name(Location const& place, std::string_view key, std::string_view name);

/// The same for an arm's name, which is part of its trials' folder names: no "/", and at most most_label bytes.
void check_arm_name(Location const& place, std::string_view name);

/// Most bytes of the name of an arm or grid point, so that file systems allow "tune-ARM-POINT-seedK-HASH".
constexpr std::size_t most_label = 109;

/// A text as part of a file's name: ASCII letters, digits, '.', '_' and '+' stay, every other byte becomes '-'; "none" for an empty text.
std::string file_label(std::string_view text);

/// A label of at most most_label bytes: a longer one is cut and ends in a hash of itself, so that different labels stay different.
std::string cut_label(std::string label);

/// The file of a lock: open, and locked by lock(). A process that opens it and forks shares it with the child: whichever of them locks it,
/// the system keeps it locked until both have closed it.
class LockFile {
 public:
  /// Opens the file `name` in the folder; makes both if they do not exist. Throws Error if that fails.
  explicit LockFile(std::filesystem::path folder, std::string name = ".lock");
  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&& other) noexcept;
  LockFile(LockFile const&) = delete;
  LockFile& operator=(LockFile const&) = delete;
  ~LockFile();

  /// Locks it with flock(), again where it is locked already. False: another process holds the lock. True also where the file system has no
  /// flock(). Throws Error for other reasons.
  bool lock(Claim::LockMode mode) const;
  /// Whether the path still leads to the open file: the folder may have been moved.
  bool in_place() const;

  int descriptor() const { return descriptor_; }
  std::filesystem::path const& folder() const { return folder_; }
  std::string const& name() const { return name_; }

 private:
  std::filesystem::path folder_;
  std::string name_;
  int descriptor_ = -1;
};

/// A lock on a folder: flock() on a file in it, which the system releases when the last process that holds it ends, for whatever reason;
/// and a claim (claim.hpp), which works where flock() does not, as on network file systems.
class FolderLock {
 public:
  /// Locks the folder, and makes it if it does not exist. Throws FolderError if another process works in it, Error if it cannot be made or
  /// locked. If another machine has a claim but has missed heartbeats, waits until it has one again or the claim lapses.
  explicit FolderLock(std::filesystem::path const& folder);
  /// As the constructor, but without waiting: nothing if another process works in the folder. `name`: of the file that is locked.
  static std::optional<FolderLock> attempt(std::filesystem::path const& folder, std::string const& name = ".lock",
                                           Claim::LockMode mode = Claim::LockMode::alone);
  /// The same with a file that is open. Nothing also if the folder has been moved.
  static std::optional<FolderLock> attempt(LockFile file, Claim::LockMode mode = Claim::LockMode::alone);
  /// As attempt(), but waits at most `limit` while another process holds the lock.
  static std::optional<FolderLock> wait(std::filesystem::path const& folder, std::string const& name, std::chrono::milliseconds limit);

  // The claim ends before the lock: who gets the lock finds no claim.
  FolderLock(FolderLock&&) noexcept = default;
  FolderLock& operator=(FolderLock&&) noexcept = default;

  /// Turns a lock held alone into a shared one. Returns false if it is lost. Throws Error if that fails.
  bool share();
  /// Whether another process has taken the folder over, because this one was stopped for too long.
  bool lost() const { return claim_.lost(); }
  /// Throws FolderError if lost().
  void check_held() const;
  /// Its descriptors.
  std::vector<int> descriptors() const;

 private:
  FolderLock(LockFile file, Claim claim) : file_(std::move(file)), claim_(std::move(claim)) {}
  LockFile file_;
  Claim claim_;
};

/// Whether a process is known to work in the folder, by its claims; reads only, so that it keeps no other process out. A clock that differs
/// from that of another machine can make it wrong; attempt() is right.
bool is_held(std::filesystem::path const& folder);

/// The first unused name of NAME.old-1, NAME.old-2, … for a folder NAME.
std::filesystem::path free_name_beside(std::filesystem::path const& folder);

/// Renames a folder to free_name_beside(); does nothing if there is none. Throws FolderError while another process works in it, or in a
/// folder anywhere inside it.
void put_aside(std::filesystem::path const& folder);

}  // namespace heed
