#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace heed {

/// Makes a folder with exactly these files (contents by name), replacing an older one as a whole.
///
/// The files are written to `.NAME.part` beside it and synced, and the folders exchanged: if the process is killed or the disk is full,
/// either the old or the new folder is there, complete. (If the file system cannot exchange folders, the old one is renamed to `.NAME.old`
/// for a moment.) The next call removes what a killed process left. Concurrent calls wait for each other. Throws Error if it cannot be
/// written; the old folder then stays.
void write_folder(std::filesystem::path const& folder, std::map<std::string, std::string> const& files);

/// Makes a folder, and its parents, with what `fill` writes into the empty folder it is given: the folder appears complete or not at all,
/// and replaces nothing but an empty folder. A killed process leaves `.NAME.part-PROCESS` beside it. Throws ConfigError if the name is that
/// of a file or of a folder that is not empty, Error if it cannot be written, and what `fill` throws.
void make_folder(std::filesystem::path const& folder, std::function<void(std::filesystem::path const& part)> const& fill);

}  // namespace heed
