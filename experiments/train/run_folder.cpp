#include "experiments/train/run_folder.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/error.hpp"
#include "experiments/config/config.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/view.hpp"
#include "experiments/train/session.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/number.hpp"

namespace heed {

namespace fs = std::filesystem;

std::optional<Index> RunFolder::compare(Experiment& settings) const {
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
  auto const were = steps == nullptr ? std::nullopt : parsed_number<Index>(steps->text);
  if (were && *were <= settings.train.steps) std::erase(differing, "train.steps");
  if (differing.empty()) return were;
  constexpr std::size_t enough = 16;  // keeps the message short; the two files have the rest
  if (std::size_t const rest = differing.size(); rest > enough) {
    differing.resize(enough);
    differing.back() = fmt::format("{} (and {} more)", differing.back(), rest - enough);
  }
  throw FolderError(fmt::format(
      "{}: holds another configuration; what differs: {} (give another name or --output, or --fresh to put the old folder aside)",
      path_.string(), fmt::join(differing, ", ")));
}

void RunFolder::begin(Experiment& settings, Index step) const {
  fs::path const summary = path_ / "summary.json";  // of a shorter run: first, since the rows that go on do not match it
  std::error_code failed;
  if (fs::exists(summary, failed) && !is_finished(path_, settings) && !fs::remove(summary, failed))
    throw Error(fmt::format("{}: cannot be removed: {}", summary.string(), failed.message()));
  remove_parts(path_);
  write_atomically(path_ / "config.yaml", emit(settings));
  remove_other_states(path_, step);
}

namespace fs = std::filesystem;

namespace {

bool same_classes(Signature const& trained, Signature const& given) {
  return std::ranges::all_of(trained.parts(), [&](PartSpec const& part) {
    return given.has(part.name) && given[part.name].classes == part.classes && given[part.name].vocabulary == part.vocabulary &&
           given[part.name].shape == part.shape;
  });
}

}  // namespace

std::unique_ptr<Dataset> data_of(TrainedModel const& run, fs::path const& path, Folders const& folders, std::string const& split,
                                 bool quiet) {
  if (run.foreign)
    throw ConfigError(path.string(), "is not a run of heed, and its data are not known: use heed evaluate with --text FILE or --ids FILE");
  auto const& settings = run.settings;
  fs::path const folder = fs::is_directory(path) ? path : path.parent_path();
  DataContext const context{.config_folder = folder,
                            .data_folder = folders.data,
                            .seed = static_cast<std::uint64_t>(settings.seed),
                            .quiet = quiet,
                            .held_out = split,
                            .runs = folders.output,
                            .tokenizer = run.tokenizer};
  std::unique_ptr<Dataset> data;
  try {
    data = viewed(open_dataset(settings.data, context), settings.model, context.seed);
  } catch (ConfigError const&) {
    throw;
  } catch (FileError const& error) {
    throw FileError(fmt::format("{} (the data of {}; --data names the folder that they are in)", error.what(), path.string()));
  } catch (Error const& error) {
    throw ConfigError(split == "test" ? "--split" : path.string(), error.what());
  }
  if (auto const difference = changed(run.files_read, data->facts().files))
    throw FileError(fmt::format("{}: was trained on other data than the present ones: {}", path.string(), *difference));
  bool const same_tokens =
      run.tokenizer.empty() || (data->tokenizer() == run.tokenizer && data->source_tokenizer() == run.source_tokenizer);
  if (!same_tokens || !same_classes(run.data, data->signature()))
    throw FileError(fmt::format("{}: was trained on other data: their vocabulary differs from that of the present data", path.string()));
  return data;
}

}  // namespace heed
