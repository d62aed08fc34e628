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

/// Appends all bytes to an open file, however many calls that takes. 0, or −1 with errno.
int write_all(int descriptor, std::string_view bytes);
/// Waits until a file, with all that is known of it, is on the disk. 0, or −1 with errno, as fsync().
int flush(int descriptor);
/// The same for its content alone, with what is needed to read it back: as fdatasync().
int flush_content(int descriptor);
/// Waits until the names in a folder are on the disk, a rename for one; "" is the working one. An errno, 0 if all is well or if the file
/// system cannot do it.
int flush_folder(std::filesystem::path const& folder);

/// Exchanges what two names lead to, files or folders, in one step. False, with nothing changed, where one of them is missing, or the
/// system or the file system cannot do it.
bool exchange(std::filesystem::path const& a, std::filesystem::path const& b);

}  // namespace heed
