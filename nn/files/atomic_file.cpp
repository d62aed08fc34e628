#include "nn/files/atomic_file.hpp"

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "autograd/error.hpp"

namespace heed {

namespace {

// Repeats a call while signals interrupt it.
template <class Call>
auto retried(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// The target of a symbolic link, which need not exist.
std::filesystem::path led_to(std::filesystem::path path) {
  constexpr int max_links = 40;  // Linux follows as many links
  std::error_code none;
  for (int i = 0; i < max_links && std::filesystem::is_symlink(path, none); ++i)
    path = path.parent_path() / std::filesystem::read_symlink(path);
  return path;
}

std::string part_name(std::filesystem::path const& target) { return "." + target.filename().string() + ".part"; }

// Of part_name() or part_name()-NUMBER.
bool is_part_name(std::string_view name) {
  auto const end = name.find_last_not_of("0123456789");
  if (end != name.npos && end + 1 < name.size() && name[end] == '-') name = name.substr(0, end);
  return name.starts_with('.') && name.ends_with(".part");
}

}  // namespace

void remove_named(std::filesystem::path const& folder, std::function<bool(std::string const& name)> const& chosen) {
  std::error_code ignored;
  std::vector<std::filesystem::path> found;
  for (auto const& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.is_regular_file(ignored) && chosen(entry.path().filename().string())) found.push_back(entry.path());
  for (auto const& path : found) std::filesystem::remove(path, ignored);
}

void remove_parts(std::filesystem::path const& folder) { remove_named(folder, is_part_name); }

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  struct stat status;
  bool const exists = ::stat(target_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail(EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    open_device();
    return;
  }
  target_ = led_to(target_);
  open_part();
}

// O_NONBLOCK: opening a pipe without a reader must fail instead of waiting. Afterwards writing must wait for a slow reader.
void AtomicFile::open_device() {
  descriptor_ = retried([&] { return ::open(target_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); });
  if (descriptor_ < 0 && errno == ENXIO) throw Error(target_.string() + ": cannot be written: a pipe or device that nobody reads");
  if (descriptor_ < 0 || ::fcntl(descriptor_, F_SETFL, 0) != 0) fail(errno);
}

void AtomicFile::open_part() {
  auto const name = target_.parent_path() / part_name(target_);
  part_ = name;
  for (int number = 2; descriptor_ < 0; ++number) {
    descriptor_ = retried([&] { return ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    if (descriptor_ < 0 && errno != EEXIST) fail(errno);
    if (descriptor_ < 0) part_ = name.string() + "-" + std::to_string(number);
  }
}

AtomicFile::~AtomicFile() { discard(); }

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    auto const written = retried([&] { return ::write(descriptor, bytes.data(), bytes.size()); });
    if (written == 0) errno = EIO;
    if (written <= 0) return -1;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void AtomicFile::write(std::span<std::byte const> bytes) {
  write(std::string_view(reinterpret_cast<char const*>(bytes.data()), bytes.size()));
}

void AtomicFile::write(std::string_view text) {
  if (write_all(descriptor_, text) != 0) fail(errno);
}

void AtomicFile::commit() {
  if (part_.empty()) {
    if (::close(std::exchange(descriptor_, -1)) != 0) fail(errno);
    return;
  }
  if (retried([&] { return flush(descriptor_); }) != 0) fail(errno);
  if (::rename(part_.c_str(), target_.c_str()) != 0) fail(errno);
  ::close(std::exchange(descriptor_, -1));
  if (int const error = flush_folder(target_.parent_path())) fail(error);
}

void AtomicFile::discard() {
  if (descriptor_ < 0) return;
  if (!part_.empty()) ::unlink(part_.c_str());
  ::close(std::exchange(descriptor_, -1));
}

void AtomicFile::fail(int error) {
  discard();
  throw Error(target_.string() + ": cannot be written: " + std::generic_category().message(error));
}

void write_atomically(std::filesystem::path const& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

#if defined(__APPLE__)

/// Apple's fsync() leaves the data in the disk's own cache; F_FULLFSYNC empties it, which not every file system supports.
int flush(int descriptor) { return ::fcntl(descriptor, F_FULLFSYNC) == 0 ? 0 : ::fsync(descriptor); }
int flush_content(int descriptor) { return flush(descriptor); }

#else

int flush(int descriptor) { return ::fsync(descriptor); }
int flush_content(int descriptor) { return ::fdatasync(descriptor); }

#endif

int flush_folder(std::filesystem::path const& folder) {
  char const* const name = folder.empty() ? "." : folder.c_str();
  int const descriptor = retried([&] { return ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return errno == EACCES ? 0 : errno;  // a folder that is writable but not readable
  int const result = retried([&] { return flush(descriptor); });
  int const error = result == 0 || errno == EINVAL ? 0 : errno;
  ::close(descriptor);
  return error;
}

#if defined(__APPLE__)

bool exchange(std::filesystem::path const& a, std::filesystem::path const& b) {
  return ::renamex_np(a.c_str(), b.c_str(), RENAME_SWAP) == 0;
}

#elif defined(RENAME_EXCHANGE)

bool exchange(std::filesystem::path const& a, std::filesystem::path const& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

#else

bool exchange(std::filesystem::path const&, std::filesystem::path const&) { return false; }

#endif

}  // namespace heed
