#pragma once

#include <filesystem>
#include <vector>

#include "experiments/train/experiment.hpp"

namespace heed {

/// The folders of results, where those of one ablation are replaced by one if a shard is among them: NAME in the output folder, which
/// becomes the ablation's whole folder. The trials that have ended are copied into it; one that is there already stays. Unless quiet,
/// prints which trials none of them brought. Throws FolderError for a folder of another plan, naming the keys that differ, or if another
/// process trains in NAME; ConfigError for a damaged ablation.yaml.
std::vector<std::filesystem::path> with_shards_joined(std::vector<std::filesystem::path> const& results, Folders const& folders,
                                                      bool quiet);

}  // namespace heed
