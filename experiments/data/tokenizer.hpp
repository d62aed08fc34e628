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

/// Text to token ids and back, without loss but for words that a vocabulary of words does not have.
class Tokenizer {
 public:
  /// The first tokens of a vocabulary of words: "<pad>", "<bos>", "<eos>", "<unk>".
  static constexpr std::int32_t pad = 0, bos = 1, eos = 2, unknown = 3, marks = 4;

  virtual ~Tokenizer() = default;

  /// Ids are 0 … vocabulary() − 1.
  virtual std::int64_t vocabulary() const = 0;
  /// A kind whose texts begin with begin() puts it in front. Throws Error naming the first character or word that is not in the vocabulary.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// Throws Error for an id outside the vocabulary. Bytes that form no UTF-8 come out as they are.
  std::string decode(std::vector<std::int64_t> const& tokens) const;
  /// The token after which a text is over; nothing if texts have no end.
  virtual std::optional<std::int64_t> end() const { return std::nullopt; }
  /// The token that encode() puts before a text; nothing if it puts none.
  virtual std::optional<std::int64_t> begin() const { return std::nullopt; }
  /// What a token is called that stands for no text ("<eos>"); nothing for one that does.
  virtual std::optional<std::string> mark(std::int64_t token) const;
  /// Words of a text that encode() makes <unk>, although they are others.
  virtual std::int64_t unknown_words(std::string_view text) const;
  /// Whether encoding takes so long that what became of a long text is worth keeping.
  virtual bool slow() const { return false; }

  /// All of it as JSON text, for restore_tokenizer().
  virtual std::string json() const = 0;

 private:
  /// Of ids in the vocabulary.
  virtual std::string text_of(std::vector<std::int64_t> const& tokens) const = 0;
};

/// A kind of tokenizer, by the name that it has in YAML and in JSON.
struct TokenizerKind {
  /// What a vocabulary is made from: the training text, the same with what is held out, and what opening data knows.
  struct Source {
    std::string_view training, all;
    DataContext const& context;
  };
  std::string name, help;
  /// Fresh settings, and the tokenizer of them. Null: no configuration chooses it, its data have it.
  std::function<std::shared_ptr<Settings>()> settings = {};
  std::function<std::shared_ptr<Tokenizer const>(Settings const& settings, Source const& source)> make = {};
  /// From what its json() says. Throws Error for a text that says something else. Null: none is kept by this name.
  std::function<std::shared_ptr<Tokenizer const>(nlohmann::json const& saved)> restore = {};
  /// Whether a text may be cut within a character: what is held out begins at any byte.
  bool cuts_characters = false;
};

/// Of a kind without keys.
struct NoTokenizerKeys : Settings {
  std::vector<Field> fields() override { return {}; }
};

/// `tokenizer: char`, `tokenizer: {kind: bpe, size: 4000}`, …: the kinds that a configuration may choose, of which `kind` is chosen.
Choice tokenizer_choice(std::string const& kind = "char");
/// The chosen tokenizer. It learns from the training text alone, but for a vocabulary of characters, which is that of `all` the text
/// (empty: there is no other). Throws Error about the text, FileError for files that are wrong.
std::shared_ptr<Tokenizer const> make_tokenizer(Choice const& choice, std::string_view training, DataContext const& context,
                                                std::string_view all = {});
/// TokenizerKind::cuts_characters of the chosen kind.
bool cuts_characters(Choice const& choice);

/// The tokenizer that json() described: of a model whose data are elsewhere. Throws Error if the text describes none.
std::shared_ptr<Tokenizer const> restore_tokenizer(std::string const& json);

}  // namespace heed
