#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace heed {

/// Parses JSON from a file, as nlohmann::json or as ordered_json, which keeps the order of names. Throws FileError for invalid JSON, for
/// deeper nesting than the limit (because code that walks a value is recursive) and for repeated names. The message begins with `what`:
/// "PATH: the header" is not JSON.
template <class Json>
Json parse_json(std::string_view text, std::string const& what, int max_levels = 64);

/// JSON as text, with line ends if indented. Bytes that are not UTF-8 (in a path, perhaps) become U+FFFD, since JSON must be UTF-8.
std::string json_text(nlohmann::ordered_json const& value, int indent = -1);

}  // namespace heed
