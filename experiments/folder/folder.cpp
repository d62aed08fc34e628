#include "experiments/folder/folder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/program/failure.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

/// Why a text cannot be a folder's name; nothing if it can.
std::optional<std::string> fault_in(std::string_view name) {
  constexpr std::size_t longest = 240;  // file systems allow 255, and a folder that is moved aside gets a suffix
  if (name.empty()) return "it is empty";
  if (name.front() == '/') return "it begins with '/'";
  for (std::size_t i = 0; i < name.size();) {
    auto const character = decode_utf8(name, i);
    if (!character) return "it is not UTF-8";
    if (!is_visible(*character)) return fmt::format("it holds U+{:04X}, which is not shown", static_cast<unsigned>(*character));
  }
  for (std::size_t begin = 0; begin <= name.size();) {
    auto const end = std::min(name.find('/', begin), name.size());
    auto const part = name.substr(begin, end - begin);
    if (part.empty()) return "a name is missing beside '/'";
    if (part == "." || part == "..") return fmt::format("'{}' is no name", part);
    if (part.size() > longest) return fmt::format("it has {} bytes, more than {}", part.size(), longest);
    begin = end + 1;
  }
  return std::nullopt;
}

/// flock(), repeated when a signal interrupts it. Returns 0 or an errno.
int locked(int descriptor, int operation) {
  int result = ::flock(descriptor, operation);
  while (result != 0 && errno == EINTR) result = ::flock(descriptor, operation);
  return result == 0 ? 0 : errno;
}

[[noreturn]] void fail_to_lock(fs::path const& file, int error) {
  auto const text = fmt::format("{}: cannot be locked: {}", file.string(), std::strerror(error));
  if (error != ENOLCK && error != EOPNOTSUPP && error != ENOSYS) throw Error(text);
  throw FolderError(text +
                    " (mount the file system with locks, as Lustre with -o flock; or give an --output on another one, and each machine its "
                    "own part of an ablation with --shard I/N)");
}

/// Whether the path leads to the open file: a folder may be moved aside between opening and locking.
bool leads_to(fs::path const& path, int descriptor) {
  struct stat open, named;
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/// Writes into a lock's file which process holds it. A message would not name it otherwise; nothing else depends on it.
void write_holder(int descriptor) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || ::ftruncate(descriptor, 0) != 0) return;
  auto const line = fmt::format("{} {}\n", host.data(), ::getpid());
  [[maybe_unused]] auto const written = ::pwrite(descriptor, line.data(), line.size(), 0);
}

}  // namespace

void check_folder_name(Location const& location, std::string_view key, std::string_view name) {
  if (auto const fault = fault_in(name))
    throw ConfigError(location, fmt::format("{}: {} is not the name of a folder inside the output folder: {}", key, shown(name), *fault));
}

void check_arm_name(Location const& location, std::string_view name) {
  auto fault = fault_in(name);
  if (!fault && name.find('/') != name.npos) fault = "it holds '/'";
  if (!fault && name.size() > max_label) fault = fmt::format("it has {} bytes, more than {}", name.size(), max_label);
  if (fault)
    throw ConfigError(location, fmt::format("add: {} cannot be an arm's name, after which folders are named: {}", shown(name), *fault));
}

std::string file_label(std::string_view text) {
  std::string label(text.empty() ? "none" : text);
  auto const is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '+';
  };
  std::ranges::replace_if(
      label, [&](char c) { return !is_plain(c); }, '-');
  return label;
}

std::string cut_label(std::string label) {
  if (label.size() <= max_label) return label;
  auto const hash = sha256(label).substr(0, 8);
  std::size_t end = max_label - 1 - hash.size();
  while ((static_cast<unsigned char>(label[end]) & 0xC0) == 0x80) --end;  // not inside a character
  label.resize(end);
  return label + "-" + hash;
}

std::string LockHolder::text() const { return process > 0 ? fmt::format("process {} on {}", process, host) : "a process on " + host; }

std::optional<LockHolder> holder_of(fs::path const& folder) {
  fs::path const file = folder / ".lock";
  int const descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  bool const held = locked(descriptor, LOCK_SH | LOCK_NB) == EWOULDBLOCK;
  ::close(descriptor);
  if (!held) return std::nullopt;
  LockHolder holder;
  if (!(std::ifstream(file) >> holder.host >> holder.process)) return LockHolder{.host = "another machine"};
  return holder;
}

std::optional<FolderLock> FolderLock::attempt(fs::path const& folder, std::string const& name, LockMode mode,
                                              std::chrono::milliseconds limit) {
  fs::path const file = folder / name;
  auto const end = std::chrono::steady_clock::now() + limit;
  while (true) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw Error(fmt::format("{}: {}", folder.string(), error.message()));
    FolderLock lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (lock.descriptor_ < 0) throw Error(fmt::format("{}: {}", file.string(), std::strerror(errno)));
    int const refused = locked(lock.descriptor_, (mode == LockMode::shared ? LOCK_SH : LOCK_EX) | LOCK_NB);
    if (refused == EWOULDBLOCK) {
      if (std::chrono::steady_clock::now() >= end) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    if (refused != 0) fail_to_lock(file, refused);
    if (!leads_to(file, lock.descriptor_)) continue;
    write_holder(lock.descriptor_);
    return lock;
  }
}

FolderLock::FolderLock(fs::path const& folder)
    : FolderLock([&] {
        // holder_of() in another process holds it for a moment
        auto lock = attempt(folder, ".lock", LockMode::alone, std::chrono::milliseconds(500));
        if (lock) return std::move(*lock);
        auto const holder = holder_of(folder);
        throw FolderError(
            fmt::format("{}: another process is training in this folder{}", folder.string(), holder ? " (" + holder->text() + ")" : ""));
      }()) {}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FolderLock::share() {
  if (int const error = locked(descriptor_, LOCK_SH)) throw Error(fmt::format("a lock cannot be shared: {}", std::strerror(error)));
}

fs::path free_name_beside(fs::path const& folder) {
  for (int i = 1;; ++i) {
    fs::path target = fmt::format("{}.old-{}", folder.string(), i);
    if (!fs::exists(target)) return target;
  }
}

void put_aside(fs::path const& folder) {
  if (!fs::exists(folder)) return;
  FolderLock const held(folder);
  // Trials may outlive their ablation: they save a checkpoint.
  for (auto const& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().filename() == ".lock" && entry.path().parent_path() != folder) FolderLock const nobody(entry.path().parent_path());
  fs::rename(folder, free_name_beside(folder));
}

}  // namespace heed
