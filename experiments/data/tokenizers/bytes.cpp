#include <algorithm>

#include <nlohmann/json.hpp>

#include "experiments/data/tokenizers/tokenizers.hpp"

namespace heed {

namespace {

class ByteTokenizer : public Tokenizer {
 public:
  Index vocabulary() const override { return 256; }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> tokens(text.size());
    std::ranges::transform(text, tokens.begin(), [](char c) { return static_cast<unsigned char>(c); });
    return tokens;
  }

  std::string json() const override { return R"({"kind":"byte"})"; }

 private:
  std::string text_of(std::vector<Index> const& tokens) const override {
    std::string text;
    for (auto const token : tokens) text.push_back(static_cast<char>(static_cast<unsigned char>(token)));
    return text;
  }
};

Declared<TokenizerKind> const bytes_tokenizer{{.name = "byte",
                                               .help = "the 256 bytes",
                                               .settings = [] { return std::make_shared<Settings>(); },
                                               .make = [](Settings const&, TokenizerKind::Source const&) { return byte_tokenizer(); },
                                               .restore = [](nlohmann::json const&) { return byte_tokenizer(); },
                                               .cuts_characters = true}};

}  // namespace

std::shared_ptr<Tokenizer const> byte_tokenizer() { return std::make_shared<ByteTokenizer>(); }

}  // namespace heed
