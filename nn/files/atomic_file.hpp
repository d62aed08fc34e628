#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace heed {

/// A file that appears complete or not at all. Bytes are written to `.NAME.part` beside the target; commit() flushes this part to disk and
/// renames it over the target. Until then an older target stays unchanged, whatever happens. Without a commit the part is removed; a killed
/// process leaves it behind, and the next write of the same target reuses it. If several processes write one target, each has its own part
/// (`.NAME.part-2`, …): all are written completely, and the last commit counts.
///
/// A symbolic link is followed: its target is replaced. A device or a pipe is never replaced, but written to directly.
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
  /// Flushes to disk (fsync), renames over the target and flushes the folder. Throws Error. Nothing may be written afterwards.
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

/// Replaces a file's content atomically. Throws Error; the old file then stays unchanged.
void write_atomically(std::filesystem::path const& path, std::string_view content);

/// Writes all bytes to an open file, in as many calls as needed. Returns 0, or −1 with errno.
int write_all(int descriptor, std::string_view bytes);
/// Waits until a file's content and metadata are on disk, as fsync(). Returns 0, or −1 with errno.
int flush(int descriptor);
/// The same for the content and the metadata that are needed to read it, as fdatasync().
int flush_content(int descriptor);
/// Waits until the names in a folder, e.g. after a rename, are on disk; "" is the working folder. Returns an errno, or 0 also if the file
/// system cannot do it or the folder is not readable.
int flush_folder(std::filesystem::path const& folder);

/// Exchanges two names, of files or folders, atomically. Returns false, with nothing changed, if one of them is missing or the system or
/// file system cannot do it.
bool exchange(std::filesystem::path const& a, std::filesystem::path const& b);

}  // namespace heed
