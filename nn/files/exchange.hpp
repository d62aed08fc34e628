#pragma once

#include <filesystem>

namespace heed {

/// Exchanges what two names lead to, files or folders, in one step. False, with nothing changed, where one of them is missing, or the
/// system or the file system cannot do it.
bool exchange(std::filesystem::path const& a, std::filesystem::path const& b);

}  // namespace heed
