#pragma once

#include <filesystem>
#include <ostream>
#include <vector>

#include "experiments/run/session.hpp"

namespace heed {

/// The trials in an ablation's folder that its last tables do not hold: of earlier versions of its file. None if no tables are there, or
/// they do not say which trials are theirs.
std::vector<std::filesystem::path> old_trials(std::filesystem::path const& ablation);

/// `heed clean`: moves the old trials of each ablation into one folder beside it, NAME.old-1, NAME.old-2, … Throws ConfigError for what is
/// no ablation's folder, FolderError while another process is at work there.
Exit clean(std::vector<std::filesystem::path> const& folders, Places const& places, std::ostream& out);

}  // namespace heed
