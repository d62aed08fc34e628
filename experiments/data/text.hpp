#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/data/documents.hpp"
#include "experiments/data/encoded_text.hpp"
#include "experiments/data/open.hpp"
#include "experiments/data/tokenized.hpp"

namespace heed {

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

/// A text as a stream of tokens, the first part of which is for training and the rest for validation. Of its characters (by the tokenizer
/// `byte`: bytes) the first ⌊n (1 − validation)⌋ are for training; where it has documents, those that begin among them. The token that ends
/// a text stands behind each document.
class TextDataset : public TokenizedDataset {
 public:
  /// `origin` names the text in messages. `held_out` is the validation text if it is one of its own, `held_out_origin`; else a part of
  /// `text` is split off. A byte-order mark at the beginning of either is no text. Throws FileError for text that the tokenizer cannot read
  /// or that is too short to be split, Error that begins with the key for a separator that the tokenizer has no token for.
  TextDataset(TextFiles const& text, std::string origin, TextSettings const& settings, DataContext const& context,
              std::optional<TextFiles> const& held_out = {}, std::string const& held_out_origin = "");
  /// Validation batches are of this text from now on. Throws FileError that begins with `origin` if it has characters that the others lack.
  void test_on(TextFiles const& text, std::string origin);

  Signature signature() const override {
    return {{.name = "inputs", .classes = tokenizer_->vocabulary()}, {.name = "next", .classes = tokenizer_->vocabulary()}};
  }
  /// Row r is the window of `context` tokens at Stream(seed, "data").below(index · batch + r, N − context).
  Batch training(std::int64_t index, std::int64_t batch, std::int64_t context) const override;
  std::int64_t validation_batches(std::int64_t batch, std::int64_t context) const override;
  /// The windows at 0, context, 2·context, …: every validation token but the first is predicted once. The last window is padded with
  /// inputs 0 and next −1; the last batch has only the rows that are left.
  Batch validation(std::int64_t index, std::int64_t batch, std::int64_t context) const override;
  ReadFiles files() const override { return read_; }
  std::optional<TextUnits> held_out_units() const override { return units_; }
  nlohmann::json describe() const override;
  /// The n-gram models (see witten_bell), counted on the training split: {"1-gram", …} … {"6-gram", …}; none without validation data.
  std::vector<std::pair<std::string, double>> reference_losses() const override;

 private:
  /// A part of the text, and its documents.
  struct TextPart {
    std::string_view text;
    std::vector<std::string_view> documents;
  };
  TextPart part_of(TextFiles const& files) const;
  std::pair<TextPart, TextPart> split(TextPart const& whole, bool cuts_characters, double fraction) const;
  std::vector<std::int32_t> encode_documents(TextPart const& part) const;
  EncodedText encoded(TextPart const& part) const;
  void hold_out(TextPart const& part);
  std::int64_t windows(std::int64_t context) const;
  std::vector<double> const& ngram_losses() const;

  std::string origin_;
  Separator separator_;
  ReadFiles read_;  ///< "text", "held_out" if it is one of its own, "test" after test_on(), and what the tokenizer was read from
  EncodedText train_, held_out_;
  std::optional<TextUnits> units_;
  std::string sha256_;  ///< of the text and the held-out text, one after the other
  std::uint64_t seed_;
  mutable std::once_flag counted_;  // the n-grams take a moment and not every command asks for them
  mutable std::vector<double> ngram_losses_;
};

/// Of a text that a tokenizer makes so many tokens of; nothing for an empty one, and where words became <unk>.
std::optional<TextUnits> units_of(std::string_view text, std::size_t tokens, Tokenizer const& tokenizer);

}  // namespace heed
