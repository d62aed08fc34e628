#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace heed {

/// Makes a folder that holds these files and nothing else; the older one of this name is replaced as a whole. Contents by name.
///
/// The files are written into `.NAME.part` beside it, brought to the disk, and the folders exchanged: whenever the process is killed or the
/// disk is full, the older folder is there as it was, or the new one. (Where the file system cannot exchange folders, the older one is
/// renamed to `.NAME.old` for a moment.) What a killed process leaves of its part goes with the next call. Several processes wait for each
/// other. Throws Error if it cannot be written; the older folder then stays.
void write_folder(std::filesystem::path const& folder, std::map<std::string, std::string> const& files);

/// Makes a folder, with those above it, of what `fill` writes into the empty one that it is given: the folder appears whole or not at all,
/// and one that holds something stays as it is. A killed process leaves `.NAME.part-PROCESS` beside it. Throws ConfigError if there is
/// something of this name already, Error if it cannot be written, and what `fill` throws.
void make_folder(std::filesystem::path const& folder, std::function<void(std::filesystem::path const& part)> const& fill);

}  // namespace heed
