#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "nn/settings.hpp"

namespace heed {

struct DataContext;

/// Text to token ids and back, without loss except for unknown words in a vocabulary of words.
class Tokenizer {
 public:
  /// The first tokens of a vocabulary of words: "<pad>", "<bos>", "<eos>", "<unk>".
  static constexpr std::int32_t pad = 0, bos = 1, eos = 2, unknown = 3, marks = 4;

  virtual ~Tokenizer() = default;

  /// Ids are 0 … vocabulary() − 1.
  virtual Index vocabulary() const = 0;
  /// Prepends begin() if the kind has one. Throws Error naming the first character or word that is not in the vocabulary.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// Throws Error for an id outside the vocabulary. Bytes that are not UTF-8 are returned unchanged.
  std::string decode(std::vector<Index> const& tokens) const;
  /// The token that ends a text; nothing if there is none.
  virtual std::optional<Index> end() const { return std::nullopt; }
  /// The token that encode() prepends; nothing if there is none.
  virtual std::optional<Index> begin() const { return std::nullopt; }
  /// The name of a special token ("<eos>"); nothing for a token that stands for text.
  virtual std::optional<std::string> mark(Index /*token*/) const { return std::nullopt; }
  /// The first byte in `text` of each of the tokens that encode() made of it, without begin(), and behind them its size.
  virtual std::vector<std::size_t> starts(std::string_view text, std::vector<std::int32_t> const& tokens) const;
  /// Number of words of a text that encode() maps to <unk>, other than "<unk>" itself.
  virtual Index unknown_words(std::string_view /*text*/) const { return 0; }
  /// Whether encoding is slow enough that the tokens of a long text are worth caching.
  virtual bool slow() const { return false; }

  /// The whole tokenizer as JSON text, for restore_tokenizer().
  virtual std::string json() const = 0;

 private:
  /// The text of ids, which are in the vocabulary.
  virtual std::string text_of(std::vector<Index> const& tokens) const = 0;
};

/// A kind of tokenizer, with its name in YAML and JSON.
struct TokenizerKind {
  /// The input for making a vocabulary: the training text, the text with its held-out part, and the context of opening data.
  struct Source {
    std::string_view training, all;
    DataContext const& context;
  };
  std::string name, help;
  /// Default settings, and the tokenizer made from settings. Null: cannot be chosen in a configuration, the data determine it.
  std::function<std::shared_ptr<Settings>()> settings = {};
  std::function<std::shared_ptr<Tokenizer const>(Settings const& settings, Source const& source)> make = {};
  /// Restores a tokenizer from its json(). Throws Error for invalid JSON content. Null: this kind is never saved.
  std::function<std::shared_ptr<Tokenizer const>(nlohmann::json const& saved)> restore = {};
  /// Whether a text may be split within a character: the held-out part may begin at any byte.
  bool cuts_characters = false;
};

/// `tokenizer: char`, `tokenizer: {kind: bpe, size: 4000}`, …: the kinds that a configuration may choose; `kind` is the default.
Choice tokenizer_choice(std::string const& kind = "char");
/// Makes the chosen tokenizer. It learns from the training text alone, except for a vocabulary of characters, which covers `all` the text
/// (empty: the training text only). Throws Error about the text, FileError for invalid files.
std::shared_ptr<Tokenizer const> make_tokenizer(Choice const& choice, std::string_view training, DataContext const& context,
                                                std::string_view all = {});
/// TokenizerKind::cuts_characters of the chosen kind.
bool cuts_characters(Choice const& choice);

/// Restores the tokenizer that json() described, for a model without its data. Throws Error if the text describes none.
std::shared_ptr<Tokenizer const> restore_tokenizer(std::string const& json);

}  // namespace heed
