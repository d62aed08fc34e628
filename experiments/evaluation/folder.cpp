#include "experiments/evaluation/folder.hpp"

#include <system_error>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/run/folder_lock.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/exchange.hpp"
#include "nn/files/flush.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds patience(10);

fs::path beside(fs::path const& folder, char const* ending) {
  return folder.parent_path() / fmt::format(".{}{}", folder.filename().string(), ending);
}

/// Puts the part in the folder's place. What was there has another name then, or is gone. Throws fs::filesystem_error.
void put_in_place(fs::path const& part, fs::path const& folder) {
  if (!fs::exists(fs::symlink_status(folder))) return fs::rename(part, folder);
  if (exchange(part, folder)) return;
  auto const old = beside(folder, ".old");
  fs::remove_all(old);
  fs::rename(folder, old);
  std::error_code error;
  fs::rename(part, folder, error);
  if (error) {
    fs::rename(old, folder);
    throw fs::filesystem_error("rename", part, folder, error);
  }
  fs::remove_all(old);
}

}  // namespace

void write_folder(fs::path const& folder, std::map<std::string, std::string> const& files) {
  if (fs::exists(folder) && !fs::is_directory(folder))
    throw Error(fmt::format("{}: cannot be written: a file that is no folder has this name", folder.string()));
  auto const lock = FolderLock::wait(folder.parent_path(), ".evaluation.lock", patience);
  if (!lock)
    throw Error(fmt::format("{}: cannot be written: another process has been writing it for {} s", folder.string(), patience.count()));
  auto const part = beside(folder, ".part");
  std::error_code ignored;
  try {
    fs::remove_all(part);
    fs::create_directory(part);
    for (auto const& [name, content] : files) write_atomically(part / name, content);
    put_in_place(part, folder);
    if (int const error = flush_folder(folder.parent_path()))
      throw fs::filesystem_error("", std::error_code(error, std::generic_category()));
  } catch (fs::filesystem_error const& error) {
    fs::remove_all(part, ignored);
    throw Error(fmt::format("{}: cannot be written: {}", folder.string(), error.code().message()));
  } catch (Error const&) {
    fs::remove_all(part, ignored);
    throw;
  }
  fs::remove_all(part, ignored);  // the older folder
}

}  // namespace heed
