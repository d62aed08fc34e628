#pragma once

#include <filesystem>
#include <optional>

#include <nlohmann/json_fwd.hpp>

namespace heed {

/// The content of a file that a run left, as JSON. Throws FileError as read_file(), and for what is not JSON.
nlohmann::ordered_json read_json(std::filesystem::path const& path);

/// The same where a file that is missing or no JSON says no more than that there is none. Throws FileError for one that cannot be read.
std::optional<nlohmann::ordered_json> find_json(std::filesystem::path const& path);

}  // namespace heed
