#include "experiments/report/evaluation_folder.hpp"

#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "autograd/error.hpp"
#include "experiments/config/yaml.hpp"
#include "experiments/folder/folder.hpp"
#include "nn/files/atomic_file.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds evaluation_wait(10);

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

/// Throws ConfigError unless nothing is there, or an empty folder.
void check_free(fs::path const& folder) {
  std::error_code unreadable;
  if (!fs::exists(fs::symlink_status(folder, unreadable))) return;
  if (!fs::is_directory(folder, unreadable)) throw ConfigError(folder.string(), "is there already, and no folder");
  fs::directory_iterator const entries(folder, unreadable);
  if (unreadable) throw ConfigError(folder.string(), fmt::format("is there already: {}", unreadable.message()));
  if (entries != fs::directory_iterator())
    throw ConfigError(folder.string(), fmt::format("is there already and holds {}: name another folder, or remove this one",
                                                   entries->path().filename().string()));
}

/// Fills a part beside the folder and puts it in its place; nothing is left of a part that failed. `named`: the folder in messages.
template <class Fill, class Put>
void make_beside(fs::path const& part, fs::path const& folder, fs::path const& named, Fill const& fill, Put const& put) {
  std::error_code ignored;
  try {
    fs::create_directories(folder.parent_path());
    fs::remove_all(part);
    fs::create_directory(part);
    fill();
    put();
    if (int const error = flush_folder(folder.parent_path()))
      throw fs::filesystem_error("", std::error_code(error, std::generic_category()));
  } catch (fs::filesystem_error const& error) {
    fs::remove_all(part, ignored);
    throw Error(fmt::format("{}: cannot be written: {}", named.string(), error.code().message()));
  } catch (Error const&) {
    fs::remove_all(part, ignored);
    throw;
  }
  fs::remove_all(part, ignored);  // an older folder
}

}  // namespace

void write_folder(fs::path const& folder, std::map<std::string, std::string> const& files) {
  if (fs::exists(folder) && !fs::is_directory(folder))
    throw Error(fmt::format("{}: cannot be written: a file that is no folder has this name", folder.string()));
  auto const lock = FolderLock::attempt(folder.parent_path(), ".evaluation.lock", FolderLock::LockMode::alone, evaluation_wait);
  if (!lock)
    throw Error(
        fmt::format("{}: cannot be written: another process has been writing it for {} s", folder.string(), evaluation_wait.count()));
  auto const part = beside(folder, ".part");
  auto const fill = [&] {
    for (auto const& [name, content] : files) write_atomically(part / name, content);
  };
  make_beside(part, folder, folder, fill, [&] { put_in_place(part, folder); });
}

void make_folder(fs::path const& named, std::function<void(fs::path const& part)> const& fill) {
  fs::path folder = fs::absolute(named).lexically_normal();
  if (folder.filename().empty()) folder = folder.parent_path();  // DIR/
  check_free(folder);
  auto const part = beside(folder, fmt::format(".part-{}", ::getpid()).c_str());
  // Renaming is refused where something has been written meanwhile.
  make_beside(
      part, folder, named, [&] { fill(part); }, [&] { fs::rename(part, folder); });
}

}  // namespace heed
