#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiments/data/files.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/tokenizers/byte_pairs.hpp"

namespace heed {

namespace {

struct BytePairSettings : Settings {
  std::optional<std::string> vocabulary;
  std::optional<Index> size;

  std::vector<Field> fields() override {
    return {
        field(&vocabulary, "vocabulary",
              "folder with vocab.json and merges.txt, encoder.json and vocab.bpe, or tokenizer.json, relative to the configuration, "
              "then to the data "
              "folder"),
        field(&size, "size",
              "instead of vocabulary: size of one that is trained on the training text, including the 256 bytes and the end-of-text token")
            .in(min_byte_pairs, 1e7)};
  }
  std::optional<std::string> contradiction() override {
    if (vocabulary && size) return "size: give either vocabulary or size, not both";
    if (!vocabulary && !size) return "vocabulary: give the folder of a vocabulary, or the size of one to be trained";
    return std::nullopt;
  }
};

std::shared_ptr<Tokenizer const> make(Settings const& settings, TokenizerKind::Source const& source) {
  auto const& [vocabulary, size] = dynamic_cast<BytePairSettings const&>(settings);
  if (!source.context.tokenizer.empty()) return restore_tokenizer(source.context.tokenizer);
  if (size) return train_byte_pairs(source.training, *size);
  return read_byte_pairs(locate(vocabulary.value(), source.context), source.context.tokenizer_files);
}

std::shared_ptr<Tokenizer const> restore(nlohmann::json const& saved) {
  return std::make_shared<BytePairs>(saved.at("tokens").get<std::vector<std::string>>(), saved.at("merges").get<std::vector<std::string>>(),
                                     "its tokens", [](std::size_t merge) { return fmt::format("its merge {}", merge); });
}

Declared<TokenizerKind> const bpe_tokenizer{
    {.name = "bpe",
     .help = "GPT-2's byte-pair encoding, with a given vocabulary or one trained on the training text",
     .settings = [] { return std::make_shared<BytePairSettings>(); },
     .make = make,
     .restore = restore}};

}  // namespace

}  // namespace heed
