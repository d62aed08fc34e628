#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/data/files.hpp"
#include "experiments/data/tokenizers/tokenizers.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"
#include "nn/files/sha256.hpp"
#include "nn/files/utf8.hpp"

namespace heed {

namespace {

struct Names {
  char const *tokens, *merges;
};
constexpr std::array known{Names{"vocab.json", "merges.txt"}, Names{"encoder.json", "vocab.bpe"}};
constexpr char const* whole = "tokenizer.json";

Names names_in(fs::path const& folder) {
  if (!is_folder(folder)) throw FileError(fmt::format("{}: is not a folder with a vocabulary", folder.string()));
  for (auto const& names : known) {
    bool const tokens = is_there(folder / names.tokens), merges = is_there(folder / names.merges);
    if (tokens && merges) return names;
    if (tokens || merges)
      throw FileError(fmt::format("{}: no such file, but there is {} beside it", (folder / (tokens ? names.merges : names.tokens)).string(),
                                  tokens ? names.tokens : names.merges));
  }
  if (is_there(folder / whole)) return {whole, whole};
  throw FileError(fmt::format("{}: holds no vocabulary: neither {} and {} nor {} and {}, nor {}", folder.string(), known[0].tokens,
                              known[0].merges, known[1].tokens, known[1].merges, whole));
}

std::vector<std::string> tokens_of(nlohmann::json const& json, std::string const& path) {
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
    bool const first = begin == 0;
    auto const line = next_line(text, begin);
    if (first && line.starts_with("#version"))
      ++lines.first;
    else if (!line.empty() || begin < text.size())  // an empty last line is none
      lines.merges.emplace_back(line);
  }
  return lines;
}

/// Throws FileError for a setting that is there and not GPT-2's: null, "" or `usual`.
void require_usual(std::string const& path, nlohmann::json const& json, std::string const& key, nlohmann::json const& usual) {
  nlohmann::json::json_pointer const pointer("/" + key);
  auto const value = json.contains(pointer) ? json[pointer] : nlohmann::json();
  if (!value.is_null() && value != "" && value != usual)
    throw FileError(fmt::format("{}: {}: {}: heed's tokenizer is GPT-2's, {}, and a text would have other tokens", path, key, value.dump(),
                                usual.dump()));
}

/// tokenizer.json in the form of the two files.
std::pair<nlohmann::json, MergeLines> parts_of(nlohmann::json const& json, std::string const& path) {
  for (auto const& [key, usual] : std::map<std::string, nlohmann::json>{{"normalizer", nullptr},
                                                                        {"pre_tokenizer/type", "ByteLevel"},
                                                                        {"pre_tokenizer/add_prefix_space", false},
                                                                        {"pre_tokenizer/use_regex", true},
                                                                        {"post_processor/type", "ByteLevel"},
                                                                        {"model/type", "BPE"},
                                                                        {"model/continuing_subword_prefix", nullptr},
                                                                        {"model/end_of_word_suffix", nullptr}})
    require_usual(path, json, key, usual);
  auto tokens = json.at("/model/vocab"_json_pointer);
  for (auto const& added : json.value("added_tokens", nlohmann::json::array()))
    tokens[added.at("content").get<std::string>()] = added.at("id");
  MergeLines lines;
  for (auto const& merge : json.at("/model/merges"_json_pointer))
    lines.merges.push_back(merge.is_array() ? fmt::format("{} {}", merge.at(0).get<std::string>(), merge.at(1).get<std::string>())
                                            : merge.get<std::string>());
  return {tokens, lines};
}

}  // namespace

std::shared_ptr<BytePairs const> read_byte_pairs(fs::path const& folder, ReadFiles* files) try {
  auto const names = names_in(folder);
  auto const tokens_path = (folder / names.tokens).string(), merges_path = (folder / names.merges).string();
  auto const read = [&](std::string const& path, std::string const& role) {
    auto text = read_text(path);
    if (files != nullptr) (*files)["tokenizer." + role] = {path, sha256(text)};
    return text;
  };
  auto const object = [&](std::string const& path, std::string const& role) {
    return parse_json<nlohmann::json>(without_byte_order_mark(read(path, role)), path + ": the vocabulary");
  };
  auto tokens = object(tokens_path, "tokens");
  MergeLines lines;
  if (names.tokens == whole)
    std::tie(tokens, lines) = parts_of(tokens, tokens_path);
  else
    lines = lines_of(read(merges_path, "merges"));
  auto const beside = [&](char const* name, std::string const& role) {
    return is_there(folder / name) ? object((folder / name).string(), role) : nlohmann::json::object();
  };
  auto const added = beside("added_tokens.json", "added");
  for (auto const& [token, number] : added.items()) tokens[token] = number;
  auto pairs = std::make_shared<BytePairs>(tokens_of(tokens, tokens_path), lines.merges, tokens_path,
                                           [&](std::size_t merge) { return fmt::format("{}:{}", merges_path, lines.first + merge); });
  for (auto const& [name, role] : {std::pair{"tokenizer_config.json", "settings"}, {"special_tokens_map.json", "special"}}) {
    auto settings = beside(name, role);
    for (char const* const key : {"add_prefix_space", "add_bos_token", "add_eos_token"})
      require_usual((folder / name).string(), settings, key, false);
    if (auto const named = settings.find("eos_token"); named != settings.end() && named->is_object())
      settings["eos_token"] = named->value("content", "");
    require_usual((folder / name).string(), settings, "eos_token", std::string(pairs->find_special(end_of_text) ? end_of_text : "</s>"));
  }
  return pairs;
} catch (FileError const&) {
  throw;
} catch (nlohmann::json::exception const& error) {
  throw FileError(fmt::format("{}: a vocabulary of another form: {}", folder.string(), error.what()));
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
