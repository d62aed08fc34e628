#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "autograd/index.hpp"
#include "experiments/config/config.hpp"
#include "experiments/data/files.hpp"
#include "experiments/program/system.hpp"

namespace heed {

/// A JSON file of a run. Throws FileError as read_file(), for invalid JSON, and for a sealed file (sha256.hpp) that was modified.
nlohmann::ordered_json read_json(std::filesystem::path const& path);

/// The same; nothing for a file that is missing, invalid or modified. Throws FileError for one that cannot be read.
std::optional<nlohmann::ordered_json> find_json(std::filesystem::path const& path);

/// Writes a folder's summary.json: sealed, with the SHA-256 of each of these files of the folder that exist under "files". Throws Error if
/// it cannot be written, FileError for a file that cannot be read.
void write_summary(std::filesystem::path const& folder, nlohmann::ordered_json summary, std::vector<std::string> const& files);

/// What a folder's summary.json says under a key; null if it cannot be read, or has no such key. Throws FileError as find_json().
nlohmann::ordered_json in_summary(std::filesystem::path const& folder, std::string const& key);

/// Throws FileError, which begins with the path, if the folder's summary.json lists this file with another hash. Files that it does not
/// list pass, as do all files in an unfinished folder without a summary.
void check_written(std::filesystem::path const& folder, std::string const& file);

/// The files whose hashes the folder's summary.json lists, in order; none without a summary.
std::vector<std::string> files_written(std::filesystem::path const& folder);

/// A run's config.yaml. Throws ConfigError as load(), FileError if it is a pipe or a device.
Document load_kept(std::filesystem::path const& folder);
/// The files that a checkpoint's run had read, from its metadata; none if an earlier revision wrote it. Throws FileError for invalid JSON.
ReadFiles files_read_by(std::map<std::string, std::string> const& metadata);
/// The files that the run in a folder has read: from its summary, else from its checkpoint; none if neither can be read.
ReadFiles files_read_in(std::filesystem::path const& folder);

/// How often a batch system stopped a run before it had finished. Timeouts are counted separately, because only they call for a longer time
/// limit.
struct Interruptions {
  Index preempted = 0, timed_out = 0;
  bool any() const { return preempted + timed_out > 0; }
};

/// The counts in interruptions.json of the run's folder, or in summary.json of a finished run; zeros if neither can be read.
Interruptions interruptions_of(std::filesystem::path const& folder);
/// Adds one to the counts in the run's folder; a stop that a person asked for is not counted. Failure to write is ignored.
void record_interruption(std::filesystem::path const& folder, StopReason reason);
/// The counts for summary.json of a finished run, which replaces interruptions.json.
nlohmann::ordered_json as_json(Interruptions const& counts);
/// Removes interruptions.json.
void forget_interruptions(std::filesystem::path const& folder);

}  // namespace heed
