#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace heed {

/// A regular file, open for reading. It is read, not mapped: a page of a mapping that cannot be read, or that the file no longer reaches
/// because another program has cut it short, ends the process by a signal; a read says what is wrong. Who replaces a file by rename leaves
/// what is open here whole.
class InputFile {
 public:
  /// Throws FileError for a file that is missing, unreadable, or not a regular file.
  explicit InputFile(std::filesystem::path path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  std::filesystem::path const& path() const { return path_; }
  /// Bytes that it held when it was opened.
  std::size_t size() const { return size_; }
  /// Fills `bytes` with what stands from `offset` on. Throws FileError if that cannot be read, and if the file has been changed since it
  /// was opened.
  void read(std::size_t offset, std::span<std::byte> bytes) const;

 private:
  void check_unchanged() const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
  std::int64_t modified_ = 0;  // in nanoseconds
};

/// The whole content of a regular file. Throws FileError if it cannot be read to its end.
std::string read_file(std::filesystem::path const& path);
/// The same; nothing if there is no such file.
std::optional<std::string> read_if_there(std::filesystem::path const& path);

}  // namespace heed
