#pragma once

#include <filesystem>
#include <ostream>
#include <vector>

#include "experiments/run/session.hpp"

namespace heed {

/// Any runs beside each other: the keys in which their configurations differ, how each metric of validation went, and where all ended. Runs
/// are folders, or names in the output folder. Throws ConfigError if there is no such run, FileError for a damaged one.
Exit compare_runs(std::vector<std::filesystem::path> const& runs, Places const& places, std::ostream& out);

}  // namespace heed
