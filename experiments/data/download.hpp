#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace heed {

/// Fetches a URL (http, https, file) to `target`, which appears whole or not at all and only if its SHA-256 is `sha256`; shows a
/// progress bar on a terminal unless `quiet`. `bytes` is the size expected: anything larger is cut off and refused.
/// Throws FileError naming target, URL and what went wrong; Error if the disk is full.
void download(std::string const& url, std::filesystem::path const& target, std::string const& sha256, std::int64_t bytes, bool quiet);

}  // namespace heed
