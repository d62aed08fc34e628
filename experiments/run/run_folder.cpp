#include "experiments/run/run_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/run/session.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace fs = std::filesystem;

std::optional<std::int64_t> RunFolder::compare(Experiment& settings) const {
  fs::path const file = path_ / "config.yaml";
  if (fs::exists(file) && !fs::is_regular_file(file))
    throw FolderError(fmt::format("{}: is not a regular file (--fresh puts the folder aside)", file.string()));
  if (!fs::exists(file)) {
    if (has_checkpoint(path_))
      throw FolderError(fmt::format("{}: holds a checkpoint but not its config.yaml (--fresh puts it aside)", path_.string()));
    return std::nullopt;
  }
  Yaml const before = load_kept(path_).root;
  auto differing = keys_changed(before, settings);
  Yaml const* const steps = before.find("train.steps");
  auto const were = steps == nullptr ? std::nullopt : parsed_number<std::int64_t>(steps->text);
  if (were && *were <= settings.train.steps) std::erase(differing, "train.steps");
  if (differing.empty()) return were;
  constexpr std::size_t enough = 16;  // a line that one reads; the rest stands in the two files
  if (std::size_t const rest = differing.size(); rest > enough) {
    differing.resize(enough);
    differing.back() = fmt::format("{} (and {} more)", differing.back(), rest - enough);
  }
  throw FolderError(fmt::format(
      "{}: holds another configuration; what differs: {} (give another name or --output, or --fresh to put the old folder aside)",
      path_.string(), fmt::join(differing, ", ")));
}

void RunFolder::claim(Experiment& settings) const {
  write_atomically(path_ / "config.yaml", emit(settings));
  std::error_code ignored;
  fs::remove(path_ / "summary.json", ignored);
}

}  // namespace heed
