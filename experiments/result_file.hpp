#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace heed {

/// A file that a run left, open for reading. Throws FileError if it is missing, cannot be read, or is no regular file: a folder, or a
/// pipe, on which one would wait for ever.
std::ifstream open_result(std::filesystem::path const& path);

/// Its whole content. Throws FileError as open_result().
std::string read_result(std::filesystem::path const& path);

/// Its whole content as JSON. Throws FileError, also for what is not JSON.
nlohmann::ordered_json read_json(std::filesystem::path const& path);

/// The same where a file that is missing or damaged says no more than that there is none.
std::optional<nlohmann::ordered_json> find_json(std::filesystem::path const& path);

}  // namespace heed
