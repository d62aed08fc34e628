#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace heed {

/// A file that appears whole or not at all. Bytes go to `.NAME.part` beside the target; commit() brings them to the disk and renames
/// that file over the target. Until then, whatever happens, an older target stays as it was. Without a commit the part is removed
/// again; a process killed on the way leaves it behind, and the next write of the same target takes it over. Who writes a target that
/// another process is writing takes a part of its own (`.NAME.part-2`, …): both are written whole, and the later commit counts.
///
/// A link is followed: what it leads to is replaced. A device or a pipe is never replaced but written to, at once.
class AtomicFile {
 public:
  /// Throws Error if the target is a folder or the part cannot be created.
  explicit AtomicFile(std::filesystem::path target);
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;
  ~AtomicFile();

  /// Appends bytes. Throws Error (disk full, quota, …).
  void write(std::span<std::byte const> bytes);
  void write(std::string_view text);
  /// Flushes to the disk (fsync), renames over the target and flushes the folder. Throws Error. Nothing may be written afterwards.
  void commit();

 private:
  void open_device();
  bool open_part();
  void discard();
  [[noreturn]] void fail(int error);

  std::filesystem::path target_;
  std::filesystem::path part_;  // empty: the target is written to directly
  int descriptor_ = -1;
};

/// Replaces a file's whole content in one step. Throws Error; the old file then stays as it was.
void write_atomically(std::filesystem::path const& path, std::string_view content);

}  // namespace heed
