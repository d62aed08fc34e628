#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace heed {

/// A file that appears whole or not at all. Bytes go to `.NAME.part` beside the target; commit() brings them to the disk and renames
/// that file over the target. Until then, whatever happens, an older target stays as it was. Without a commit the part is removed
/// again; a process killed on the way leaves it behind, and the next write of the same target takes it over. Two processes cannot
/// write the same target at once: the part is locked.
class AtomicFile {
 public:
  /// Throws FileError if the part cannot be created or another process is writing the same target.
  explicit AtomicFile(std::filesystem::path target);
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;
  ~AtomicFile();

  /// Appends bytes. Throws FileError (disk full, quota, …).
  void write(std::span<std::byte const> bytes);
  void write(std::string_view text);
  /// Flushes to the disk (fsync), renames over the target and flushes the folder. Throws FileError. Nothing may be written afterwards.
  void commit();

 private:
  void open_part();
  void discard();
  [[noreturn]] void fail(int error);

  std::filesystem::path target_;
  std::filesystem::path part_;
  int descriptor_ = -1;
};

/// Replaces a file's whole content in one step. Throws FileError; the old file then stays as it was.
void write_atomically(std::filesystem::path const& path, std::string_view content);

}  // namespace heed
