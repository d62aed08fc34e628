#include "experiments/study/unfinished.hpp"

#include <fmt/format.h>

#include "autograd/error.hpp"
#include "nn/files/safetensors.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace fs = std::filesystem;

void keep_part(fs::path const& file, PartOfCell const& part) {
  if (file.empty()) return;
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) throw Error(fmt::format("{}: cannot be made: {}", file.parent_path().string(), error.message()));
  save_safetensors(file, {part.begin(), part.end()}, {{std::string(seal_name), open_seal()}});
}

PartOfCell kept_part(fs::path const& file) {
  PartOfCell part;
  std::error_code unreadable;
  if (file.empty() || !fs::is_regular_file(file, unreadable)) return part;
  try {
    SafetensorsFile const kept(file);
    kept.check_seal();
    for (auto const& name : kept.names()) part.emplace(name, kept.tensor(name));
  } catch (FileError const&) {
    part.clear();
  }
  return part;
}

}  // namespace heed
