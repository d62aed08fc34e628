#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace heed {

/// A lock on a folder: on a file in it. The system lets go of it when the last process that holds it ends, however it ends.
class FolderLock {
 public:
  /// Held by one alone, or by any number that all say `shared`.
  enum class LockMode { alone, shared };

  /// Makes the folder if need be. Throws FolderError if another process is at work there, Error if it cannot be made or locked.
  explicit FolderLock(std::filesystem::path const& folder);
  /// The same; nothing if another process is at work there. `name`: of the file in it that is locked.
  static std::optional<FolderLock> attempt(std::filesystem::path const& folder, std::string const& name = ".lock",
                                           LockMode mode = LockMode::alone);
  /// The same; waits while another process holds it, but not longer than `limit`: then nothing.
  static std::optional<FolderLock> wait(std::filesystem::path const& folder, std::string const& name, std::chrono::milliseconds limit);

  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  FolderLock(FolderLock const&) = delete;
  FolderLock& operator=(FolderLock const&) = delete;
  ~FolderLock();

  /// Lets others share what was held alone.
  void share();
  /// What a forked process must keep open to hold the lock on when this one ends.
  int descriptor() const { return descriptor_; }

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

/// The first of NAME.old-1, NAME.old-2, … beside a folder that is free.
std::filesystem::path free_name_beside(std::filesystem::path const& folder);

/// Renames a folder to NAME.old-1, NAME.old-2, … Throws FolderError while another process is at work in it, or in a folder
/// anywhere inside it.
void put_aside(std::filesystem::path const& folder);

}  // namespace heed
