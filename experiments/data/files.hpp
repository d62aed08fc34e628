#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace heed {

struct DataContext;

/// A file and its content's SHA-256, as summary.json keeps them.
struct HashedFile {
  std::string file, sha256;
};

/// The files that something was read from, as they were then, by what each is to the reader: "text", "training.source", "init.from".
using ReadFiles = std::map<std::string, HashedFile>;

/// {"text": {"file": …, "sha256": …}, …}, and back. What is no such object is left out.
nlohmann::json to_json(ReadFiles const& files);
ReadFiles read_files_of(nlohmann::json const& json);

/// The first that both have with another content, in words: "text: words.txt had SHA-256 3f…, and words.txt has a1…"; nothing if there
/// is none. Where a file lies does not matter.
std::optional<std::string> changed(ReadFiles const& before, ReadFiles const& now);

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
