#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace heed {

/// The content of a file that a run left, as JSON. Throws FileError as read_file(), for what is not JSON, and for a sealed file
/// (sha256.hpp) that is not as it was written.
nlohmann::ordered_json read_json(std::filesystem::path const& path);

/// The same where a file that is missing, no JSON or not as it was written says no more than that there is none. Throws FileError for one
/// that cannot be read.
std::optional<nlohmann::ordered_json> find_json(std::filesystem::path const& path);

/// Writes a folder's summary.json: sealed, and under "files" with the SHA-256 of each of these files of the folder, as far as they are
/// there. Throws Error if it cannot be written, FileError for a file that cannot be read.
void write_summary(std::filesystem::path const& folder, nlohmann::ordered_json summary, std::vector<std::string> const& files);

/// Throws FileError, which begins with the path, if the folder's summary.json knows another content of this file. A file of which it does
/// not speak passes, and so does all in a folder without one: what is not finished.
void check_written(std::filesystem::path const& folder, std::string const& file);

/// The files of which the folder's summary.json knows the content, in order; none where there is no summary.
std::vector<std::string> files_written(std::filesystem::path const& folder);

}  // namespace heed
