#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace heed {

/// What makes tokens of text in a folder of another program's model, as Tokenizer::json() has it; empty: nothing there does. That is the
/// byte pairs of `vocab.json` and `merges.txt` (or `encoder.json` and `vocab.bpe`), else what write_tokenizer_files() wrote of another
/// kind. Throws FileError that begins with the file.
std::string read_tokenizer_files(std::filesystem::path const& folder);

/// Writes into such a folder what makes tokens of text: of byte pairs `vocab.json` and `merges.txt`, and `tokenizer_config.json` and
/// `special_tokens_map.json` for transformers; of another kind, of which transformers has none, `heed_tokenizer.json`. Nothing of "".
/// Throws Error. What its user must know, a line; "": nothing.
std::string write_tokenizer_files(std::string const& tokenizer, std::int64_t context, std::filesystem::path const& folder);

/// The token that ends a text; nothing if there is none, or no tokenizer.
std::optional<std::int64_t> end_of_texts(std::string const& tokenizer);

}  // namespace heed
