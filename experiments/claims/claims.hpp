#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/ablation/claim.hpp"
#include "experiments/program/run_options.hpp"

namespace heed {

/// A claim's file with what its trials say.
struct JudgedClaim {
  std::string name;
  ClaimSettings claim;
  std::optional<ClaimFinding> finding = {};  ///< nothing: not run yet
  std::vector<std::string> registrations = {};
  std::size_t seeds = 0;
  double minutes = 0;  ///< of training, summed over the trials; of a study's measurements
  std::string machine = {}, revision = {};
};

/// Reads a claim's file, an ablation or a study, and its results in the output folder if they are there. Throws ConfigError for a file
/// without a claim, and as load_ablation(); FileError for damaged results.
JudgedClaim judged_claim(std::filesystem::path const& file, Folders const& folders);

/// A row a claim, with the finding of each criterion; for the terminal.
std::string claims_table(std::vector<JudgedClaim> const& claims);
/// Writes results.csv, summary.json and report.html into a folder, which is returned.
std::filesystem::path write_claims(std::vector<JudgedClaim> const& claims, std::filesystem::path const& folder);
/// Writes README.md and claims.svg: the same for a reader of the repository.
void write_claims_page(std::vector<JudgedClaim> const& claims, std::filesystem::path const& folder);

}  // namespace heed
