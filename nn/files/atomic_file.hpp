#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace heed {

/// A file that appears complete or not at all. Bytes are written to a new file `.NAME.part` beside the target (`.NAME.part-2`, … if that
/// exists: other processes may be writing the same target); commit() flushes this part to disk and renames it over the target. Until then
/// an older target stays unchanged, whatever happens; the last commit counts. Without a commit the part is removed; a killed process leaves
/// it behind, until remove_parts().
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
  void open_part();
  void discard();
  [[noreturn]] void fail(int error);

  std::filesystem::path target_;
  std::filesystem::path part_;  // empty: the target is written to directly
  int descriptor_ = -1;
};

/// Removes the files in this folder whose names are chosen. What cannot be removed stays.
void remove_named(std::filesystem::path const& folder, std::function<bool(std::string const& name)> const& chosen);
/// Removes the parts of files in this folder that were never committed. Only for who keeps other processes from writing there.
void remove_parts(std::filesystem::path const& folder);

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

/// Exchanges two names, of files or folders, atomically. Returns false, with nothing changed, if one is missing or the system cannot do it.
bool exchange(std::filesystem::path const& a, std::filesystem::path const& b);

}  // namespace heed
