#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "autograd/index.hpp"

namespace heed {

/// The tokenizer in the folder of another program's model, as Tokenizer::json() writes it; empty: there is none. It is read from the byte
/// pairs in `vocab.json` and `merges.txt` (or what else read_byte_pairs() reads), else from a file that write_tokenizer_files() wrote for
/// another kind. Throws FileError that begins with the file.
std::string read_tokenizer_files(std::filesystem::path const& folder);

/// Writes into such a folder what makes tokens of text: of byte pairs `vocab.json` and `merges.txt`, and `tokenizer_config.json` and
/// `special_tokens_map.json` for transformers; of another kind, of which transformers has none, `heed_tokenizer.json`. Nothing of "".
/// Throws Error. What its user must know, a line; "": nothing.
std::string write_tokenizer_files(std::string const& tokenizer, Index context, std::filesystem::path const& folder);

/// The token that ends a text; nothing if there is none, or no tokenizer.
std::optional<Index> end_of_texts(std::string const& tokenizer);

}  // namespace heed
