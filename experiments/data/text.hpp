#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/data/files.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/tokenizer.hpp"

namespace heed {

/// The tokens of a text, in memory or in a mapped file. Copies share them.
struct EncodedText {
  std::shared_ptr<void const> owner;
  std::span<std::int32_t const> tokens;

  /// A file of kept_tokens() with this key, mapped; nothing if it is missing, damaged or another key's. The file must never be changed in
  /// place (a mapping past its end would kill the process): it is replaced by rename.
  static std::optional<EncodedText> read(std::filesystem::path const& path, std::string const& key);
};

/// The tokens from `encode`, cached as tokens/KEY in the cache folder: behind a header with their number and the SHA-256 of the key and
/// them. Computed each time if they cannot be cached.
EncodedText kept_tokens(std::string const& key, std::function<std::vector<std::int32_t>()> const& encode);

/// `data: {kind: text, path: tinyshakespeare/input.txt, tokenizer: char, validation: 0.1}`
struct TextSettings : Settings {
  std::optional<std::string> path;
  std::optional<std::string> name;
  Choice tokenizer = tokenizer_choice();
  Separator separator = "none";
  double validation = 0.1;

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// A text as a stream of tokens, split into a first part for training and the rest for validation: the first ⌊n (1 − validation)⌋ of its n
/// characters (with the tokenizer `byte`: bytes) are for training; with documents, those that begin there. The end-of-text token follows
/// each document. Files are "text", a separate "held_out", "test" after test_on(), and the tokenizer's.
class TextDataset : public Dataset {
 public:
  /// `origin` names the text in messages. `held_out` is a separate validation text; otherwise a part of `text` is split off. Byte-order
  /// marks are skipped. Throws FileError for text that the tokenizer cannot read or that is too short, Error for a separator without token.
  TextDataset(TextFiles const& text, std::string origin, TextSettings const& settings, DataContext const& context,
              std::optional<TextFiles> const& held_out = {}, std::string const& held_out_origin = "");
  /// Uses this text for validation batches from now on. Throws FileError that begins with `origin` for characters that are not known.
  void test_on(TextFiles const& text, std::string const& origin);

  /// Row r is the window of `context` tokens at Stream(seed, "data").below(index · batch + r, N − context).
  Batch training(Index index, Index batch, Index context) const override;
  Index validation_batches(Index batch, Index context) const override;
  /// Windows at 0, context, …: every validation token but the first is predicted once. The last one is padded with inputs 0 and next −1.
  Batch validation(Index index, Index batch, Index context) const override;

 private:
  /// A split of the text, and its documents.
  struct TextPart {
    std::string_view text;
    std::vector<std::string_view> documents;
  };
  TextPart part_of(TextFiles const& files) const;
  std::pair<TextPart, TextPart> split(TextPart const& whole, bool cuts_characters, double fraction) const;
  EncodedText encoded(TextPart const& part) const;
  /// Takes a text for validation, and notes its units and the losses of n-gram models (witten_bell) counted on the training split.
  void hold_out(TextPart const& part, char const* split);
  Index windows(Index context) const;

  std::string origin_;
  Separator separator_;
  EncodedText train_, held_out_;
  std::uint64_t seed_;
};

/// The tokens of documents, one after the other, without begin(); each is followed by end() unless the separator is "none".
std::vector<std::int32_t> encode_documents(std::vector<std::string_view> const& documents, Tokenizer const& tokenizer,
                                           Separator const& separator);

/// The words between blanks of a text, and the ends of its lines (TextUnits).
double words_in(std::string_view text);

/// The units of a text of this many tokens; nothing for an empty text, and if words became <unk>.
std::optional<TextUnits> units_of(std::string_view text, std::size_t tokens, Tokenizer const& tokenizer);

}  // namespace heed
