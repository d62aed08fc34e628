#pragma once

#include <filesystem>
#include <string>

#include "experiments/data/open.hpp"
#include "experiments/data/read_files.hpp"

namespace heed {

/// Where fetched data are kept: $XDG_CACHE_HOME/heed, else ~/.cache/heed; empty where neither XDG_CACHE_HOME nor HOME is set.
std::filesystem::path cache_folder();

/// The context's data folder, else $HEED_DATA, else cache_folder().
std::filesystem::path data_folder(DataContext const& context);

/// A path as written in a configuration, made absolute: relative to that file, then to the data folder; then it may be a run's name. In the
/// configuration that a finished run has left in its folder it is, where there is no such file and no `--data` was given, the one that the
/// run has read, as summary.json names it, which is noted in the context. Throws FileError saying where it looked, and for a file that has
/// changed since.
std::filesystem::path locate(std::string const& path, DataContext const& context);

/// A file's whole content. Throws FileError if it is missing, no regular file, unreadable or empty.
std::string read_text(std::filesystem::path const& path);

/// A YAML file that comes with heed: configs/data/NAME.
std::filesystem::path shipped(std::string const& name);

}  // namespace heed
