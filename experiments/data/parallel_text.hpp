#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace heed {

/// A text and its translation, line by line.
struct ParallelText {
  struct Side {
    std::string path, sha256;
    std::vector<std::string> lines;
  };
  Side source, target;
  std::vector<std::size_t> numbers;  ///< of the files' lines, from 0, that those of the sides are

  /// A byte-order mark at the beginning of a file is no text. Throws FileError naming file and line if a file is missing, a line is empty
  /// or not UTF-8 or holds a mark's name, or one file has more lines than the other.
  static ParallelText read(std::filesystem::path const& source, std::filesystem::path const& target);
  /// Without the pairs of which a side has more words than so many. Throws FileError if none are left.
  ParallelText up_to(std::int64_t longest) const;

  /// Throws FileError about a pair's line in the file of a side.
  [[noreturn]] void refuse(Side const& side, std::size_t pair, std::string const& message) const;
};

}  // namespace heed
