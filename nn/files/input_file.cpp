#include "nn/files/input_file.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autograd/error.hpp"

namespace heed {

namespace {

[[noreturn]] void fail(std::filesystem::path const& path, int error) {
  throw FileError(path.string() + ": cannot be read: " + std::generic_category().message(error));
}

Index modification_time(struct stat const& status) {
#if defined(__APPLE__)
  auto const& time = status.st_mtimespec;
#else
  auto const& time = status.st_mtim;
#endif
  return time.tv_sec * Index{1'000'000'000} + time.tv_nsec;
}

}  // namespace

// O_NONBLOCK: opening a pipe without a writer must not wait for one. Delegated: what throws after it closes the file.
InputFile::InputFile(std::filesystem::path const& path) : InputFile(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status;
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) fail(path_, errno);
  if (S_ISDIR(status.st_mode)) fail(path_, EISDIR);
  if (!S_ISREG(status.st_mode)) throw FileError(path_.string() + ": cannot be read: not a regular file");
  size_ = static_cast<std::size_t>(status.st_size);
  modified_ = modification_time(status);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_), modified_(other.modified_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(std::size_t offset, std::span<std::byte> bytes) const {
  constexpr std::size_t piece = 1 << 30;  // Linux reads no more than 2 GiB at a time
  while (!bytes.empty()) {
    auto const count = ::pread(descriptor_, bytes.data(), std::min(bytes.size(), piece), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path_, errno);
    if (count == 0) break;  // shorter than it was
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::size_t>(count);
  }
  check_unchanged();
  if (!bytes.empty()) throw FileError(path_.string() + ": cannot be read: it ends early");
}

void InputFile::check_unchanged() const {
  struct stat status;
  if (::fstat(descriptor_, &status) != 0) fail(path_, errno);
  if (static_cast<std::size_t>(status.st_size) != size_ || modification_time(status) != modified_)
    throw FileError(path_.string() + ": has been changed since it was opened (it had " + std::to_string(size_) + " bytes, now " +
                    std::to_string(status.st_size) + ")");
}

std::string read_file(std::filesystem::path const& path) {
  InputFile const file(path);
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::optional<std::string> read_if_there(std::filesystem::path const& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  return read_file(path);
}

}  // namespace heed
