#include "experiments/exchange/tokenizer_files.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autograd/error.hpp"
#include "experiments/data/tokenizers/bpe.hpp"
#include "experiments/data/tokenizers/byte_pairs.hpp"
#include "nn/files/atomic_file.hpp"
#include "nn/files/input_file.hpp"
#include "nn/files/json.hpp"

namespace heed {

namespace fs = std::filesystem;

namespace {

constexpr char const* own_name = "heed_tokenizer.json";

std::string byte_pair_text(fs::path const& folder) { return BytePairTokenizer(read_byte_pairs(folder)).json(); }

/// The settings of transformers' GPT2Tokenizer, which adds an end-of-text token unless the settings say that there is none.
nlohmann::ordered_json tokenizer_settings(BytePairTokenizer const& tokenizer, Index context) {
  auto const end = tokenizer.end();
  nlohmann::ordered_json const mark = end ? nlohmann::ordered_json(*tokenizer.mark(*end)) : nlohmann::ordered_json();
  return {{"tokenizer_class", "GPT2Tokenizer"},
          {"model_max_length", context},
          {"add_prefix_space", false},
          {"bos_token", mark},
          {"eos_token", mark},
          {"unk_token", mark}};
}

}  // namespace

std::string read_tokenizer_files(fs::path const& folder) {
  std::error_code unreadable;
  auto const holds = [&](char const* name) { return fs::exists(folder / name, unreadable); };
  if (std::ranges::any_of(std::array{"vocab.json", "merges.txt", "encoder.json", "vocab.bpe", "tokenizer.json"}, holds))
    return byte_pair_text(folder);
  if (!holds(own_name)) return {};
  auto text = read_file(folder / own_name);
  try {
    restore_tokenizer(text);
  } catch (Error const& error) {
    throw FileError(fmt::format("{}: {}", (folder / own_name).string(), error.what()));
  }
  return text;
}

std::string write_tokenizer_files(std::string const& tokenizer, Index context, fs::path const& folder) {
  if (tokenizer.empty()) return "its data were tokens without a text: the folder has no tokenizer";
  auto const restored = restore_tokenizer(tokenizer);
  auto const* const byte_pairs = dynamic_cast<BytePairTokenizer const*>(restored.get());
  if (byte_pairs == nullptr) {
    write_atomically(folder / own_name, tokenizer);
    return fmt::format("its tokens are not byte pairs: only heed reads what makes them of text, {}", own_name);
  }
  write_byte_pairs(byte_pairs->pairs(), folder);
  auto const settings = tokenizer_settings(*byte_pairs, context);
  write_atomically(folder / "tokenizer_config.json", json_text(settings, 2) + "\n");
  auto marks = nlohmann::ordered_json::object();
  for (char const* const name : {"bos_token", "eos_token", "unk_token"})
    if (!settings[name].is_null()) marks[name] = settings[name];
  write_atomically(folder / "special_tokens_map.json", json_text(marks, 2) + "\n");
  return {};
}

std::optional<Index> end_of_texts(std::string const& tokenizer) {
  return tokenizer.empty() ? std::nullopt : restore_tokenizer(tokenizer)->end();
}

}  // namespace heed
