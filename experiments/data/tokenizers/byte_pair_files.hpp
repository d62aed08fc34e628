#pragma once

#include <filesystem>
#include <memory>

#include "experiments/data/read_files.hpp"
#include "experiments/data/tokenizers/byte_pairs.hpp"

namespace heed {

/// The vocabulary in a folder: vocab.json and merges.txt, as Hugging Face's tokenizers write them, or OpenAI's encoder.json and vocab.bpe.
/// The one maps tokens to numbers 0 … n − 1, the other has a merge a line, perhaps behind a first line "#version: …". `files` (may be null)
/// gets what was read. Throws FileError that begins with the file, and the line where there is one.
std::shared_ptr<BytePairs const> read_byte_pairs(std::filesystem::path const& folder, ReadFiles* files = nullptr);

/// Writes a folder's vocab.json and merges.txt; the folder is made if there is none. Throws Error.
void write_byte_pairs(BytePairs const& vocabulary, std::filesystem::path const& folder);

}  // namespace heed
