#pragma once

#include <filesystem>

#include "experiments/report/page.hpp"

namespace heed {

/// Whether the folder's summary.json is a study's.
bool holds_study(std::filesystem::path const& folder);

/// The chapter of a finished study's folder, from its summary.json and results.csv; its figures are not drawn yet. Throws FileError.
Chapter study_chapter(std::filesystem::path const& folder);

}  // namespace heed
