#include "experiments/run/folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experiments/run/session.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

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

}  // namespace

void check_folder_name(Location const& place, std::string_view key, std::string_view name) {
  if (auto const fault = fault_in(name))
    throw ConfigError(place, fmt::format("{}: {} is not the name of a folder inside the output folder: {}", key, shown(name), *fault));
}

void check_arm_name(Location const& place, std::string_view name) {
  auto fault = fault_in(name);
  if (!fault && name.find('/') != name.npos) fault = "it holds '/'";
  if (!fault && name.size() > most_label) fault = fmt::format("it has {} bytes, more than {}", name.size(), most_label);
  if (fault)
    throw ConfigError(place, fmt::format("add: {} cannot be an arm's name, after which folders are named: {}", shown(name), *fault));
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
  if (label.size() <= most_label) return label;
  auto const hash = sha256(std::as_bytes(std::span(label))).substr(0, 8);
  std::size_t end = most_label - 1 - hash.size();
  while ((static_cast<unsigned char>(label[end]) & 0xC0) == 0x80) --end;  // not inside a character
  label.resize(end);
  return label + "-" + hash;
}

namespace fs = std::filesystem;

namespace {

FolderError at_work(fs::path const& folder) {
  std::string who = "another process";
  for (auto const& holder : claim_holders(folder))
    if (holder.alive) who = holder.text();
  return FolderError(fmt::format("{}: another process is training in this folder ({})", folder.string(), who));
}

/// flock(), repeated when a signal interrupts it.
int locked(int descriptor, int operation) {
  int result = ::flock(descriptor, operation);
  while (result != 0 && errno == EINTR) result = ::flock(descriptor, operation);
  return result;
}

/// Whether the error means that the file system has no flock(): then only the claim protects the folder.
bool has_no_locks(int error) { return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS; }

/// Whether a process on another machine that holds the folder has been silent for more than a third of the time after which its claim
/// lapses.
bool may_lapse(fs::path const& folder) {
  auto const silent = [](ClaimHolder const& holder) { return !holder.here && 3 * holder.silent > static_cast<double>(holder.lapses); };
  return std::ranges::any_of(claim_holders(folder), silent);
}

}  // namespace

LockFile::LockFile(fs::path folder, std::string name) : folder_(std::move(folder)), name_(std::move(name)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Error(fmt::format("{}: {}", folder_.string(), error.message()));
  auto const path = folder_ / name_;
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw Error(fmt::format("{}: {}", path.string(), std::strerror(errno)));
}

LockFile::LockFile(LockFile&& other) noexcept
    : folder_(std::move(other.folder_)), name_(std::move(other.name_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

LockFile& LockFile::operator=(LockFile&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(name_, other.name_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

LockFile::~LockFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool LockFile::lock(Claim::LockMode mode) const {
  if (locked(descriptor_, (mode == Claim::LockMode::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 || has_no_locks(errno)) return true;
  if (errno == EWOULDBLOCK) return false;
  throw Error(fmt::format("{}: cannot be locked: {}", (folder_ / name_).string(), std::strerror(errno)));
}

bool LockFile::in_place() const {
  struct stat open, named;
  return ::fstat(descriptor_, &open) == 0 && ::stat((folder_ / name_).c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

std::optional<FolderLock> FolderLock::attempt(LockFile file, Claim::LockMode mode) {
  if (!file.lock(mode) || !file.in_place()) return std::nullopt;
  auto claim = Claim::attempt(file.folder(), file.name(), mode, file.descriptor());
  if (!claim) return std::nullopt;
  return FolderLock(std::move(file), std::move(*claim));
}

std::optional<FolderLock> FolderLock::attempt(fs::path const& folder, std::string const& name, Claim::LockMode mode) {
  while (true) {
    LockFile file(folder, name);
    if (!file.lock(mode)) return std::nullopt;
    if (file.in_place()) return attempt(std::move(file), mode);
  }
}

FolderLock::FolderLock(fs::path const& folder)
    : FolderLock([&] {
        auto lock = attempt(folder);
        for (std::int64_t seconds = 0; !lock && seconds <= claim_lapses() && may_lapse(folder); ++seconds) {
          std::this_thread::sleep_for(std::chrono::seconds(1));
          lock = attempt(folder);
        }
        if (!lock) throw at_work(folder);
        return std::move(*lock);
      }()) {}

std::optional<FolderLock> FolderLock::wait(fs::path const& folder, std::string const& name, std::chrono::milliseconds limit) {
  auto const end = std::chrono::steady_clock::now() + limit;
  auto lock = attempt(folder, name);
  while (!lock && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    lock = attempt(folder, name);
  }
  return lock;
}

void FolderLock::check_held() const {
  if (lost())
    throw FolderError(
        fmt::format("{}: another process has taken this folder over while this one was stopped, and goes on from what this one had saved",
                    file_.folder().string()));
}

std::vector<int> FolderLock::descriptors() const {
  std::vector<int> all = claim_.descriptors();
  all.push_back(file_.descriptor());
  return all;
}

bool FolderLock::share() {
  if (!claim_.share()) return false;
  if (!file_.lock(Claim::LockMode::shared)) throw Error("a lock cannot be shared");
  return true;
}

bool is_held(fs::path const& folder) { return std::ranges::any_of(claim_holders(folder), &ClaimHolder::alive); }

fs::path free_name_beside(fs::path const& folder) {
  for (int i = 1;; ++i) {
    fs::path target = fmt::format("{}.old-{}", folder.string(), i);
    if (!fs::exists(target)) return target;
  }
}

void put_aside(fs::path const& folder) {
  if (!fs::exists(folder)) return;
  FolderLock const held(folder);
  for (auto const& entry : fs::recursive_directory_iterator(folder)) {  // trials may outlive their ablation: they save a checkpoint
    if (entry.path().filename() == ".lock" && entry.path().parent_path() != folder && !FolderLock::attempt(entry.path().parent_path()))
      throw at_work(entry.path().parent_path());
  }
  fs::rename(folder, free_name_beside(folder));
}

}  // namespace heed
