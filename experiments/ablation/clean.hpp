#pragma once

#include <filesystem>
#include <ostream>
#include <vector>

#include "experiments/run/session.hpp"

namespace heed {

/// The trials in an ablation's folder that are not in its latest tables: those of earlier versions of its file. Empty if there are no
/// tables or they do not list their trials.
std::vector<std::filesystem::path> old_trials(std::filesystem::path const& ablation);

/// `heed clean`: moves the old trials of each ablation into one folder beside it, NAME.old-1, NAME.old-2, … Throws ConfigError for other
/// folders, FolderError while another process is at work there.
Exit clean(std::vector<std::filesystem::path> const& folders, Places const& places, std::ostream& out);

}  // namespace heed
