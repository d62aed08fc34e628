#pragma once

#include <filesystem>
#include <vector>

#include "experiments/run/session.hpp"

namespace heed {

/// Writes report.html and figures/*.svg and *.pdf into the folder of a finished run, study or ablation, from what lies there. That gnuplot
/// is not installed, or does not end, is said on standard error and in the report, which then lacks what it draws; but a report of the same
/// results that has figures stays. Throws FileError, and Interrupted as draw() does.
void write_report(std::filesystem::path const& folder, bool quiet);

/// Whether the report is of the last summary.
bool has_report(std::filesystem::path const& folder);

/// One page of several folders, at `path`. Throws likewise.
void write_report(std::vector<std::filesystem::path> const& folders, std::filesystem::path const& path, bool quiet);

}  // namespace heed
