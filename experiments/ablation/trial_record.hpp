#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace heed {

/// Why a trial did not finish: its last message, and the end of its log.
struct Failure {
  std::string message;
  std::vector<std::string> log;
  bool diverged = false;  ///< NaN or infinity: the same program would fail again
};

/// The failure recorded in a trial's folder; nothing if none is recorded. Throws FileError if the record cannot be read.
std::optional<Failure> failure_of(std::filesystem::path const& folder);
/// Writes failure.json, atomically, from the exit code and the end of the log. Returns the failure.
Failure record_failure(std::filesystem::path const& folder, int code);
/// Removes the records of failures in an ablation's folder, so that those trials are tried again. Records of divergence (NaN) that are
/// newer than the program are kept: the same program would diverge again.
void forget_failures(std::filesystem::path const& ablation);
/// Moves finished trials aside whose metrics.jsonl is not the file that they finished with, and prints their names; those that the ablation
/// still has are trained again. Throws Error if one cannot be moved.
void put_damaged_aside(std::filesystem::path const& ablation);
/// The trials that timed out three times or more, one line each: "dot-seed1-0123abcd timed out 3 times: …".
std::string timed_out_trials(std::filesystem::path const& ablation);

}  // namespace heed
