#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/tokenizers/byte_pairs.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

struct Names {
  char const *tokens, *merges;
};
constexpr std::array known{Names{"vocab.json", "merges.txt"}, Names{"encoder.json", "vocab.bpe"}};

Names names_in(fs::path const& folder) {
  std::error_code unreadable;
  if (!fs::is_directory(folder, unreadable)) throw FileError(fmt::format("{}: is not a folder with a vocabulary", folder.string()));
  for (auto const& names : known) {
    bool const tokens = fs::exists(folder / names.tokens, unreadable), merges = fs::exists(folder / names.merges, unreadable);
    if (tokens && merges) return names;
    if (tokens || merges)
      throw FileError(fmt::format("{}: no such file, but there is {} beside it", (folder / (tokens ? names.merges : names.tokens)).string(),
                                  tokens ? names.tokens : names.merges));
  }
  throw FileError(fmt::format("{}: holds no vocabulary: neither {} and {} nor {} and {}", folder.string(), known[0].tokens, known[0].merges,
                              known[1].tokens, known[1].merges));
}

std::vector<std::string> tokens_of(std::string_view text, std::string const& path) {
  auto const json = parse_json<nlohmann::json>(without_byte_order_mark(text), path + ": the vocabulary");
  if (!json.is_object()) throw FileError(fmt::format("{}: is no object of tokens and their numbers", path));
  std::vector<std::string> tokens(json.size());
  for (auto const& [token, number] : json.items()) {
    if (!number.is_number_unsigned())
      throw FileError(fmt::format("{}: the number of token '{}' is {}, no whole number ≥ 0", path, token, number.dump()));
    auto const id = number.get<std::uint64_t>();
    if (id >= tokens.size())
      throw FileError(fmt::format("{}: the number of token '{}' is {}, but of {} tokens each has one of 0 … {}", path, token, id,
                                  tokens.size(), tokens.size() - 1));
    if (!tokens[id].empty())
      throw FileError(fmt::format("{}: the tokens '{}' and '{}' both have the number {}", path, tokens[id], token, id));
    if (token.empty()) throw FileError(fmt::format("{}: token {} is empty", path, id));
    tokens[id] = token;
  }
  return tokens;
}

/// The merges, and the line of the first.
struct MergeLines {
  std::vector<std::string> merges;
  std::size_t first = 1;
};

MergeLines lines_of(std::string_view text) {
  MergeLines lines;
  text = without_byte_order_mark(text);
  for (std::size_t begin = 0; begin < text.size();) {
    auto const end = std::min(text.find('\n', begin), text.size());
    auto line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (begin == 0 && line.starts_with("#version"))
      ++lines.first;
    else if (!line.empty() || end + 1 < text.size())  // an empty last line is none
      lines.merges.emplace_back(line);
    begin = end + 1;
  }
  return lines;
}

}  // namespace

std::shared_ptr<BytePairs const> read_byte_pairs(fs::path const& folder, ReadFiles* files) try {
  auto const names = names_in(folder);
  auto const tokens_path = (folder / names.tokens).string(), merges_path = (folder / names.merges).string();
  auto const tokens = read_text(tokens_path), merges = read_text(merges_path);
  if (files != nullptr) {
    (*files)["tokenizer.tokens"] = {tokens_path, sha256(std::as_bytes(std::span(tokens)))};
    (*files)["tokenizer.merges"] = {merges_path, sha256(std::as_bytes(std::span(merges)))};
  }
  auto const lines = lines_of(merges);
  return std::make_shared<BytePairs>(tokens_of(tokens, tokens_path), lines.merges, tokens_path,
                                     [&](std::size_t merge) { return fmt::format("{}:{}", merges_path, lines.first + merge); });
} catch (FileError const&) {
  throw;
} catch (Error const& error) {
  throw FileError(error.what());
}

void write_byte_pairs(BytePairs const& vocabulary, fs::path const& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw Error(fmt::format("{}: {}", folder.string(), failed.message()));
  auto tokens = nlohmann::ordered_json::object();
  for (auto const& token : vocabulary.tokens()) tokens[token] = tokens.size();
  std::string merges = "#version: 0.2\n";
  for (auto const& merge : vocabulary.merges()) merges += merge + '\n';
  write_atomically(folder / known[0].tokens, json_text(tokens));
  write_atomically(folder / known[0].merges, merges);
}

}  // namespace heed
