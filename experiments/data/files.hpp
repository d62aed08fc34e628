#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace heed {

namespace fs = std::filesystem;

struct DataContext;

/// A file and its content's SHA-256, as recorded in summary.json.
struct HashedFile {
  std::string file, sha256;
};

/// The files that something was read from, by their role: "text", "training.source", "init.from".
using ReadFiles = std::map<std::string, HashedFile>;

/// Converts to {"text": {"file": …, "sha256": …}, …}, and back. Invalid entries are dropped.
nlohmann::json to_json(ReadFiles const& files);
ReadFiles read_files_of(nlohmann::json const& json);

/// The first file in both whose content differs, whatever its path: "text: words.txt had SHA-256 3f…, and words.txt has a1…"; or nothing.
std::optional<std::string> changed(ReadFiles const& before, ReadFiles const& now);

/// The folder for downloads: $XDG_CACHE_HOME/heed, else ~/.cache/heed; empty if neither XDG_CACHE_HOME nor HOME is set.
fs::path cache_folder();

/// The context's data folder, else $HEED_DATA, else cache_folder().
fs::path data_folder(DataContext const& context);

/// A path of a configuration, made absolute: relative to that file, then to the data folder; then it may be a run's name. For a finished
/// run's own configuration, if there is no such path and no `--data` was given, the file (or folder) that the run read by its summary.json,
/// which is noted in the context. Throws FileError that lists the paths tried, and for a file that has changed since.
fs::path locate(std::string const& path, DataContext const& context);

/// A file's whole content. Throws FileError if it is missing, not a regular file, unreadable or empty.
std::string read_text(fs::path const& path);

/// A YAML file that comes with heed: configs/data/NAME.
fs::path shipped(std::string const& name);

/// A line without its end, from `begin` on, which moves behind it.
std::string_view next_line(std::string_view text, std::size_t& begin);

/// Throws FileError "PATH:LINE: message".
[[noreturn]] void refuse_line(std::string const& path, std::size_t line, std::string const& message);

/// A text, of one file or of several concatenated ones.
struct TextFiles {
  std::string content;
  std::vector<std::size_t> begins;  ///< offset of each file in the content
};

/// The content of a file, or of all files below a folder, sorted by path, without byte-order marks and with a line end at the end of each.
/// Names that begin with a dot are left out. Throws FileError for files that cannot be read or are empty, and for a folder without files.
TextFiles read_text_files(fs::path const& path);

/// How documents are separated: "none" (the text is one), "file", "line", "blank_line", or the text of a separating line.
using Separator = std::string;

/// The documents of a text, as views into it, without separators. Except with "none", the end of a file also ends a document. Empty
/// documents are left out, except with "line". Throws Error if the separator is the text of a line and there is no such line.
std::vector<std::string_view> documents_of(std::string_view text, std::vector<std::size_t> const& file_begins, Separator const& separator);

}  // namespace heed
