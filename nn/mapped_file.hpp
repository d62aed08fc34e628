#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace heed {

/// A regular file mapped read-only into memory for as long as this object lives.
///
/// A page of a mapping that the file no longer reaches raises SIGBUS. Turning that signal into an error takes a process-wide handler,
/// which is not a library's to install; instead check_unchanged() compares the file with what it was when opened. Call it before
/// touching bytes(), and after it to know that what was read is of one piece. heed itself replaces files by rename, which leaves a
/// mapping of the old file whole; what remains is a file that another program cuts short during the copy itself.
class MappedFile {
 public:
  /// Throws FileError for a file that is missing, unreadable, or not a regular file.
  explicit MappedFile(std::filesystem::path path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::filesystem::path const& path() const { return path_; }
  /// The file's content.
  std::span<std::byte const> bytes() const { return bytes_; }
  /// Throws FileError if the file's size or time of modification is not what it was when it was opened.
  void check_unchanged() const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::span<std::byte const> bytes_;
  std::int64_t modified_ = 0;  // in nanoseconds
};

}  // namespace heed
