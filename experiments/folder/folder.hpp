#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "autograd/index.hpp"
#include "experiments/config/yaml.hpp"

namespace heed {

/// Throws ConfigError if `name`, the value of `key` at `location`, cannot name a folder inside another one: a path that leaves it (".."),
/// empty parts or ".", control characters, invisible characters, and marks that change the direction of text.
void check_folder_name(Location const& location, std::string_view key, std::string_view name);

/// The same for an arm's name, which is part of its trials' folder names: no "/", and at most max_label bytes.
void check_arm_name(Location const& location, std::string_view name);

/// Most bytes of the name of an arm or grid point, so that file systems allow "tune-ARM-POINT-seedK-HASH".
constexpr std::size_t max_label = 109;

/// A text as part of a file's name: ASCII letters, digits, '.', '_' and '+' stay, every other byte becomes '-'; "none" for an empty text.
std::string file_label(std::string_view text);

/// A label of at most max_label bytes: a longer one is cut and ends in a hash of itself, so that different labels stay different.
std::string cut_label(std::string label);

/// A lock on a folder: flock() on a file in it, which says who locked it last. The system gives the lock up when the process that holds it
/// ends, for whatever reason; on NFS, when the lease of its machine ends. A process that is stopped keeps it.
class FolderLock {
 public:
  /// alone: one process holds the lock; shared: any number of processes that all ask for `shared`.
  enum class LockMode { alone, shared };

  /// Locks the folder, and makes it if it does not exist. Throws FolderError if another process works in it, or if its file system has no
  /// locks; Error if it cannot be made or locked.
  explicit FolderLock(std::filesystem::path const& folder);
  /// As the constructor, but nothing if another process still holds the lock after `limit`. `name`: of the file that is locked.
  static std::optional<FolderLock> attempt(std::filesystem::path const& folder, std::string const& name = ".lock",
                                           LockMode mode = LockMode::alone, std::chrono::milliseconds limit = {});

  FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FolderLock& operator=(FolderLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FolderLock();

  /// Turns a lock held alone into a shared one. In between another process may hold it alone. Throws Error if that fails.
  void share();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

/// Who holds a folder's lock.
struct LockHolder {
  std::string host;   ///< name of the machine; "another machine" if the file does not say
  Index process = 0;  ///< process id there
  /// "process 4711 on node3".
  std::string text() const;
};

/// Who works in the folder; nothing if nobody does. Writes nothing, but holds a free lock for a moment.
std::optional<LockHolder> holder_of(std::filesystem::path const& folder);

/// The first unused name of NAME.old-1, NAME.old-2, … for a folder NAME.
std::filesystem::path free_name_beside(std::filesystem::path const& folder);

/// Renames a folder to free_name_beside(); does nothing if there is none. Throws FolderError while another process works in it, or in a
/// folder anywhere inside it.
void put_aside(std::filesystem::path const& folder);

}  // namespace heed
