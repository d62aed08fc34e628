#pragma once

#include <filesystem>
#include <vector>

#include "experiments/session.hpp"

namespace heed {

struct ReportOptions {
  std::vector<std::filesystem::path> folders;  ///< of ablations, runs and studies; a name is looked for in the output folder too
  Places places;
  bool quiet = false;
};

/// Writes report.html and figures/*.svg and *.pdf into the folder of a finished run, study or ablation, from what lies there. That gnuplot
/// is not installed is said on standard error and in the report, which then lacks what it draws. Throws FileError.
void write_report(std::filesystem::path const& folder, bool quiet);

/// Whether the report is of the last summary.
bool has_report(std::filesystem::path const& folder);

/// `heed report`: the report of each folder and, of several, one report.html of all in the output folder; of an ablation that is running,
/// from what it has finished. Throws ConfigError for a folder
/// that is not there, FileError.
Exit report(ReportOptions const& options);

}  // namespace heed
