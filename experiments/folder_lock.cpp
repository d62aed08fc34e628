#include "experiments/folder_lock.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "experiments/run.hpp"

namespace heed {

namespace fs = std::filesystem;

FolderLock::FolderLock(fs::path folder, std::string const& name) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Error(fmt::format("{}: {}", folder_.string(), error.message()));
  descriptor_ = ::open((folder_ / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw Error(fmt::format("{}: {}", (folder_ / name).string(), std::strerror(errno)));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor_);
    throw FolderError(fmt::format("{}: another process is training in this folder", folder_.string()));
  }
}

FolderLock::~FolderLock() { ::close(descriptor_); }

void put_aside(fs::path const& folder) {
  if (!fs::exists(folder)) return;
  FolderLock const held(folder);
  for (int i = 1;; ++i) {
    fs::path const target = fmt::format("{}.old-{}", folder.string(), i);
    if (fs::exists(target)) continue;
    fs::rename(folder, target);
    return;
  }
}

}  // namespace heed
