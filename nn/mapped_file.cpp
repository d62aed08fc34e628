#include "nn/mapped_file.hpp"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autograd/error.hpp"

namespace heed {

namespace {

[[noreturn]] void fail(std::filesystem::path const& path, int error) {
  throw FileError(path.string() + ": cannot be read: " + std::generic_category().message(error));
}

// Closes the descriptor if the constructor does not get to the end.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

std::int64_t modification_time(struct stat const& status) {
  return status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe without a writer must not wait for one.
  Descriptor file{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0) fail(path_, errno);
  struct stat status;
  if (::fstat(file.value, &status) != 0) fail(path_, errno);
  if (S_ISDIR(status.st_mode)) fail(path_, EISDIR);
  if (!S_ISREG(status.st_mode)) throw FileError(path_.string() + ": cannot be read: not a regular file");

  if (auto const size = static_cast<std::size_t>(status.st_size); size > 0) {  // mmap refuses a length of 0
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
    if (address == MAP_FAILED) fail(path_, errno);
    bytes_ = {static_cast<std::byte const*>(address), size};
  }
  modified_ = modification_time(status);
  descriptor_ = std::exchange(file.value, -1);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(std::exchange(other.bytes_, {})),
      modified_(other.modified_) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MappedFile::check_unchanged() const {
  struct stat status;
  if (::fstat(descriptor_, &status) != 0) fail(path_, errno);
  if (static_cast<std::size_t>(status.st_size) != bytes_.size() || modification_time(status) != modified_)
    throw FileError(path_.string() + ": has been changed since it was opened (it had " + std::to_string(bytes_.size()) + " bytes, now " +
                    std::to_string(status.st_size) + ")");
}

}  // namespace heed
