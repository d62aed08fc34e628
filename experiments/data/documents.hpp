#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// A text, of one file or of several one after the other.
struct TextFiles {
  std::string content;
  std::vector<std::size_t> begins;  ///< of each file in the content
};

/// A file's content as it is, or that of a folder's files and its folders', by their paths in sorted order, without byte-order marks; a
/// file that does not end its last line has it ended. Names that begin with a dot are left out. Throws FileError for what cannot be read,
/// for empty files, and for a folder without files.
TextFiles read_text_files(std::filesystem::path const& path);

/// How the documents of a text are told apart: "none" (it is one), "file", "line", "blank_line", or the text of a line that stands
/// between them.
using Separator = std::string;

/// The documents of a text, as views into it, without what stands between them. A file ends a document whatever the separator is, but for
/// "none". Empty ones are left out, but for "line": there an empty line is an empty document. Throws Error if the separator is the text of
/// a line, and there is no such line.
std::vector<std::string_view> documents_of(std::string_view text, std::vector<std::size_t> const& file_begins, Separator const& separator);

}  // namespace heed
