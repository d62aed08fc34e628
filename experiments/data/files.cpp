#include "experiments/data/files.hpp"

#include <cstdlib>

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "experiments/config/build_info.hpp"
#include "experiments/config/config.hpp"
#include "experiments/data/catalogue.hpp"
#include "nn/files/input_file.hpp"

namespace heed {
namespace fs = std::filesystem;

fs::path cache_folder() {
  if (auto const* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return fs::path(cache) / "heed";
  if (auto const* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "heed";
  throw Error("neither XDG_CACHE_HOME nor HOME is set: no folder to keep fetched data in (--data DIR names one)");
}

fs::path data_folder(DataContext const& context) {
  if (!context.data_folder.empty()) return context.data_folder;
  if (auto const* folder = std::getenv("HEED_DATA"); folder && *folder) return folder;
  return cache_folder();
}

fs::path locate(std::string const& path, DataContext const& context) try {
  return resolve_path(path, context.config_folder, data_folder(context));
} catch (ConfigError const& error) {
  for (auto const& entry : catalogue())
    for (auto const& file : entry.files)
      if (file.path == path) throw FileError(fmt::format("{}; the catalogue has it: data.name: {} fetches it", error.what(), entry.name));
  throw FileError(error.what());
}

std::string read_text(fs::path const& path) {
  auto text = read_file(path);
  if (text.empty()) throw FileError(path.string() + ": the file is empty");
  return text;
}

fs::path shipped(std::string const& name) { return fs::path(build_info().source) / "configs" / "data" / name; }

}  // namespace heed
