#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/data/open.hpp"
#include "experiments/data/tokenized.hpp"

namespace heed {

/// `data: {kind: text, path: tinyshakespeare/input.txt, tokenizer: char, validation: 0.1}`
struct TextSettings : Settings {
  std::optional<std::string> path;
  std::optional<std::string> name;
  std::string tokenizer = "char";
  double validation = 0.1;

  std::vector<Field> fields() override;
  std::optional<std::string> contradiction() override;
};

/// A text of n tokens, of which the first ⌊n (1 − validation)⌋ are for training and the rest for validation.
class TextDataset : public TokenizedDataset {
 public:
  /// `origin` names the file in messages. `held_out` is the validation text if it is a file of its own, `held_out_origin`; else `fraction`
  /// of `text` is split off. A byte-order mark at the beginning of either is no text. Throws FileError for text that is not UTF-8
  /// (tokenizer "char") or too short to be split.
  TextDataset(std::string_view text, std::string origin, std::string const& tokenizer, double fraction,
              std::optional<std::string_view> held_out, std::uint64_t seed, std::string const& held_out_origin = "");
  /// Validation batches are of this text from now on. Throws FileError that begins with `origin` if it has characters that the others lack.
  void test_on(std::string_view text, std::string origin);

  Signature gives() const override {
    return {{.name = "inputs", .classes = tokenizer_.vocabulary()}, {.name = "next", .classes = tokenizer_.vocabulary()}};
  }
  /// Row r is the window of `context` tokens at Stream(seed, "data").below(index · batch + r, N − context).
  Batch training(std::int64_t index, std::int64_t batch, std::int64_t context) const override;
  std::int64_t validation_batches(std::int64_t batch, std::int64_t context) const override;
  /// The windows at 0, context, 2·context, …: every validation token but the first is predicted once. The last window is padded with
  /// inputs 0 and next −1; the last batch has only the rows that are left.
  Batch validation(std::int64_t index, std::int64_t batch, std::int64_t context) const override;
  ReadFiles files() const override { return read_; }
  nlohmann::json describe() const override;
  /// The n-gram models (see witten_bell), counted on the training split: {"1-gram", …} … {"6-gram", …}; none without validation data.
  std::vector<std::pair<std::string, double>> yardsticks() const override;

 private:
  std::int64_t windows(std::int64_t context) const;
  std::vector<double> const& ngram_losses() const;

  std::string origin_;
  ReadFiles read_;  ///< "text", "held_out" if it is a file of its own, and "test" after test_on()
  std::vector<std::int32_t> train_, held_out_;
  std::string sha256_;  ///< of the text and the held-out text, one after the other
  std::uint64_t seed_;
  mutable std::once_flag counted_;  // the n-grams take a moment and not every command asks for them
  mutable std::vector<double> ngram_losses_;
};

}  // namespace heed
