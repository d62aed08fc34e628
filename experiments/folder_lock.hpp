#pragma once

#include <filesystem>
#include <string>

namespace heed {

/// A folder, held by this process alone while it lives. The system lets go of it when the process ends, however it ends.
class FolderLock {
 public:
  /// Makes the folder if need be; `name` of the file in it that is locked. Throws FolderError if another process is at work there, Error
  /// if it cannot be made.
  explicit FolderLock(std::filesystem::path folder, std::string const& name = ".lock");
  ~FolderLock();
  FolderLock(FolderLock const&) = delete;
  FolderLock& operator=(FolderLock const&) = delete;

  std::filesystem::path const& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  int descriptor_ = -1;
};

/// Renames a folder to NAME.old-1, NAME.old-2, … Throws FolderError while another process is at work in it.
void put_aside(std::filesystem::path const& folder);

}  // namespace heed
