#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A text, of one file or of several concatenated ones.
struct TextFiles {
  std::string content;
  std::vector<std::size_t> begins;  ///< offset of each file in the content
};

/// The content of a file, or of all files below a folder, in the sorted order of their paths, without byte-order marks; a missing line end
/// at the end of a file is added. Names that begin with a dot are left out. Throws FileError for files that cannot be read, for empty
/// files, and for a folder without files.
TextFiles read_text_files(std::filesystem::path const& path);

/// How documents are separated: "none" (the text is one), "file", "line", "blank_line", or the text of a separating line.
using Separator = std::string;

/// The documents of a text, as views into it, without separators. Except with "none", the end of a file also ends a document. Empty
/// documents are left out, except with "line", where an empty line is an empty document. Throws Error if the separator is the text of a
/// line and no such line exists.
std::vector<std::string_view> documents_of(std::string_view text, std::vector<std::size_t> const& file_begins, Separator const& separator);

}  // namespace heed
