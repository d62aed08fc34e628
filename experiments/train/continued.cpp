#include "experiments/train/continued.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/folder/record.hpp"
#include "experiments/folder/result_file.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/number.hpp"
#include "nn/files/sha256.hpp"

namespace heed {

namespace {

/// On which the updates made, the data's position or the random state depend.
constexpr std::array kept_keys{
    "seed", "dtype", "data", "model", "init", "train.batch", "train.accumulate", "train.optimizer.kind", "train.ema", "train.adapters"};

}  // namespace

ContinuedRun continued_run(LoadedExperiment const& experiment, fs::path const& folder) {
  if (!fs::is_directory(folder) || !has_checkpoint(folder))
    experiment.refuse("train.continue", fmt::format("{} is not the folder of a run that has a checkpoint", folder.string()));
  fs::path const file = folder / "checkpoint.safetensors";
  ContinuedRun from{folder, {file.string(), sha256_of_file(file)}, load_checkpoint(folder), 0};
  auto const found = [&](auto const& metadata, char const* key) -> std::string const& {
    auto const entry = metadata.find(key);
    if (entry == metadata.end())
      throw FileError(fmt::format("{}: does not say its {}: an earlier revision of heed wrote it", file.string(), key));
    return entry->second;
  };
  from.rate = parsed_number<double>(found(from.checkpoint.state_metadata, "rate")).value_or(0);
  Experiment settings = experiment.settings;
  auto const differing = keys_changed(parse_yaml(found(from.checkpoint.metadata, "configuration"), file.string()), settings);
  for (auto const& key : differing)
    if (std::ranges::any_of(kept_keys, [&](char const* kept) { return is_within(key, kept); }))
      experiment.refuse(
          key, fmt::format("is another in {}, which this run continues (init.from begins anew with its weights)", folder.string()));
  if (from.checkpoint.step >= settings.train.steps)
    experiment.refuse("train.steps", fmt::format("{} has made {} updates already", folder.string(), from.checkpoint.step));
  return from;
}

void take_rows(ContinuedRun const& from, fs::path const& folder, bool with_best) {
  read_rows(from.folder);  // that they are whole
  write_atomically(folder / "metrics.jsonl", read_file(from.folder / "metrics.jsonl"));
  if (with_best && has_best(from.folder)) save_best(folder, load_best(from.folder));
}

nlohmann::ordered_json lineage_of(ContinuedRun const& from) {
  nlohmann::ordered_json lineage{
      {"run", from.folder.string()}, {"step", from.checkpoint.step}, {"sha256", from.file.sha256}, {"lr", from.rate}};
  if (auto before = in_summary(from.folder, "continued"); !before.is_null()) lineage["continued"] = std::move(before);
  return lineage;
}

std::string lineage_in_words(nlohmann::ordered_json const& lineage) {
  auto const before = lineage.find("continued");
  return fmt::format("continued from {} at step {}{}", lineage.value("run", ""), lineage.value("step", Index{0}),
                     before == lineage.end() ? "" : ", which was " + lineage_in_words(*before));
}

}  // namespace heed
