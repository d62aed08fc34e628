#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "autograd/index.hpp"

namespace heed {

/// A regular file, open for reading; it stays complete if it is replaced by rename. Reads instead of mapping: a mapped page that cannot be
/// read, or that was cut off meanwhile, would kill the process by a signal; a failed read is reported.
class InputFile {
 public:
  /// Throws FileError for a file that is missing, unreadable, or not a regular file.
  explicit InputFile(std::filesystem::path const& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  std::filesystem::path const& path() const { return path_; }
  /// Its size when it was opened.
  std::size_t size() const { return size_; }
  /// Fills `bytes` from `offset` on. Throws FileError if that fails, and if the file has changed since it was opened.
  void read(std::size_t offset, std::span<std::byte> bytes) const;

 private:
  InputFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  void check_unchanged() const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
  Index modified_ = 0;  // in nanoseconds
};

/// Whether there is a regular file, a folder, or anything at all, of this name; false also where one may not look.
inline bool is_file(std::filesystem::path const& path) {
  std::error_code unreadable;
  return std::filesystem::is_regular_file(path, unreadable);
}
inline bool is_folder(std::filesystem::path const& path) {
  std::error_code unreadable;
  return std::filesystem::is_directory(path, unreadable);
}
inline bool is_there(std::filesystem::path const& path) {
  std::error_code unreadable;
  return std::filesystem::exists(path, unreadable);
}

/// The whole content of a regular file. Throws FileError if it cannot be read to its end.
std::string read_file(std::filesystem::path const& path);
/// The same; nothing if the file does not exist.
std::optional<std::string> read_if_there(std::filesystem::path const& path);

}  // namespace heed
