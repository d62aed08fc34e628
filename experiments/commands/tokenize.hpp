#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>

#include "experiments/run/session.hpp"

namespace heed {

/// What the command line says of a text and a vocabulary of byte pairs.
struct TokenizeOptions {
  std::string file;                   ///< the text, or a folder of texts; relative to the working folder, then to the data folder
  std::string vocabulary;             ///< its folder, likewise; empty: one is trained
  std::optional<std::int64_t> train;  ///< tokens of the vocabulary that is trained, and left in the output folder
  std::filesystem::path ids;          ///< where the tokens' numbers go; empty: nowhere
  bool special = false;               ///< special tokens that stand in the text are those tokens
  Places places;
  bool quiet = false;
};

/// `heed tokenize`: trains a vocabulary if it is asked to, tells the tokens of the text, its bytes and words and their ratios, and writes
/// the numbers as little-endian int32. Throws FileError for files that are wrong, Error for one that cannot be written.
Exit tokenize(TokenizeOptions const& options, std::ostream& out);

}  // namespace heed
